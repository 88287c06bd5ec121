"""The region of a member cluster, for people: from a label of its FederatedCluster, or from its nodes. Pure."""

from federation.apimachinery.resources import Object

REGION_LABEL = "topology.kubernetes.io/region"
_LENGTH_MAX = 253


def region_of(cluster: Object, resources: Object) -> str:
    """Return the region of a FederatedCluster with these `status.resources`, "" if it is unknown.

    Nodes in several regions are listed in order; the text is cut where that would be too long.
    """
    own = ((cluster.get("metadata") or {}).get("labels") or {}).get(REGION_LABEL)
    classes = resources.get("nodeClasses") or ()
    of_nodes = {region for each in classes if (region := (each.get("labels") or {}).get(REGION_LABEL))}
    return str(own or ",".join(sorted(of_nodes)))[:_LENGTH_MAX]
