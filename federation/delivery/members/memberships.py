"""The beginning of a membership: what federated objects recorded about an earlier one does not count.

`departed-clusters` and the status name clusters that may hold an object which has to be removed. They name them by the
name of the FederatedCluster, and another one may have it later: the same cluster that left and joins again, or another
cluster. Before a cluster counts as joined, its name is removed from objects that are not placed in it. So what names
the cluster afterwards was decided in this membership, and is evidence (`planning/leftovers/evidence.py`).
"""

from federation.delivery.members.clusters import BY_CLUSTER, clusters_of_interest
from federation.delivery.rules.status import clusters_of
from federation.planning.federatedobject.placements import DEPARTED, departed_clusters, effective_placement
from federation.runtime.federatedobjects import FederatedObjects


async def forget_earlier(objects: FederatedObjects, cluster: str) -> None:
    """Remove the name of a cluster that is about to join from objects that may have been left in it."""
    await objects.wait_synced()
    objects.add_index(BY_CLUSTER, clusters_of_interest)
    for key in objects.keys_by_index(BY_CLUSTER, cluster):
        federated = objects.get(key)
        if federated is None:
            continue
        departed = departed_clusters(federated)
        if cluster in departed:
            body = {"metadata": {"annotations": DEPARTED.entry(departed - {cluster})}}
            federated = await objects.patch(key, federated, body) or federated
        reported = clusters_of(federated)
        if cluster in reported and cluster not in effective_placement(federated):
            entries = [entry for name, entry in reported.items() if name != cluster]
            await objects.patch(key, federated, {"status": {"clusters": entries}}, subresource="status")
