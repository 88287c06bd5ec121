"""The simulated scheduling of new pods: whether a node of a subset has room for one, before the subset is chosen.

It follows nodes and pods, and keeps the free resources of every node up to date.
"""

from federation.apimachinery.resources import Object
from federation.features.workloadspread.rules.inflight import count_waiting
from federation.features.workloadspread.rules.injection import inject_subset
from federation.features.workloadspread.rules.ledger import parse_match
from federation.features.workloadspread.rules.subsets import name_of
from federation.planning.clusters.clusterresources import Collector
from federation.planning.corerules import PatchPod
from federation.runtime.informer import Informer
from federation.scheduling.nodefit import fits_nodes

_BY_SUBSET = "subset"


class Simulation:
    """The free resources of one cluster's nodes."""

    def __init__(self, pods: Informer, nodes: Informer, patch_pod: PatchPod) -> None:
        self._pods = pods
        self._patch_pod = patch_pod
        self._nodes = Collector()
        pods.add_index(_BY_SUBSET, _subset_keys)
        pods.add_handler(self._on_pod)
        nodes.add_handler(self._on_node)

    def fits(self, spread: Object, subset: Object, pod: Object) -> bool:
        """Return True if a node fits the pod with the changes of the subset; BadRequest for a malformed patch."""
        metadata = spread["metadata"]
        injected = inject_subset(pod, metadata["name"], subset, self._patch_pod)
        known = self._pods.by_index(_BY_SUBSET, _key(metadata["namespace"], metadata["name"], name_of(subset)))
        return fits_nodes(injected, self._nodes, count_waiting(spread, name_of(subset), known))

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        metadata = (new or old or {})["metadata"]
        self._nodes.set_pod((metadata["namespace"], metadata["name"]), new)

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        self._nodes.set_node((new or old or {})["metadata"]["name"], new)


def _subset_keys(pod: Object) -> list[str]:
    match = parse_match(pod)
    return [] if match is None else [_key(pod["metadata"]["namespace"], match.spread, match.subset)]


def _key(namespace: str, spread: str, subset: str) -> str:
    return f"{namespace}/{spread}/{subset}"
