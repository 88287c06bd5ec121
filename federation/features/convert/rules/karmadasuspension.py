"""The `suspension` of Karmada's policies as ours, and as our suspensions of deliveries. Pure.

Karmada suspends the objects of a policy without a reason, an owner or an end, so the converted one names the policy.
"""

from federation.api.resources import CLUSTER_DELIVERY_SUSPENSIONS, DELIVERY_SUSPENSIONS
from federation.apimachinery.resources import Object
from federation.features.convert.rules.fieldreader import FieldReader

_REASON = "suspended in Karmada by spec.suspension of this policy"


def to_suspension(spec: FieldReader, title: str, metadata: Object, policy: Object) -> Object | None:
    """Return the suspension of the deliveries of a policy, None if nothing is suspended.

    `title` names the policy, `metadata` and `policy` are those of the converted one, whose spec gets `suspension`.
    """
    suspension = spec.child("suspension")
    if suspension.flag("scheduling"):
        policy["suspension"] = {"scheduling": True, "reason": _REASON}
    some = suspension.child("dispatchingOnClusters")
    clusters, is_everywhere = some.texts("clusterNames"), suspension.flag("dispatching")
    if is_everywhere and clusters:
        some.note("clusterNames", "has no effect beside dispatching: true")
    if not (is_everywhere or clusters):
        return None
    namespace = metadata.get("namespace")
    resource = DELIVERY_SUSPENSIONS if namespace else CLUSTER_DELIVERY_SUSPENSIONS
    converted: Object = {"objects": policy["resourceSelectors"]} if policy.get("resourceSelectors") else {}
    if not is_everywhere:
        converted["clusters"] = clusters
    converted |= {"owner": title[:256], "reason": _REASON}
    where = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": metadata["name"], **where},
        "spec": converted,
    }
