"""Which namespaces go to every cluster, and what that means for their federated objects (spec §4). Pure.

Workloads can only arrive where their namespace is, so namespaces go everywhere by themselves. They may exist in a
member already: they are adopted, and an adopted one is never deleted.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from federation.api import conditions, names
from federation.api.resources import Object
from federation.planning import pipeline

_ADOPT_ANNOTATIONS = {
    names.INTERNAL_CONFLICT_RESOLUTION: "adopt",
    names.INTERNAL_CLUSTERS_TO_ADOPT: '{"regexp":".*"}',
    names.INTERNAL_ORPHAN: "adopted",
}


def is_namespace(federated: Mapping[str, Any]) -> bool:
    """Say whether the federated object stands for a v1 Namespace."""
    template = (federated.get("spec") or {}).get("template") or {}
    return template.get("apiVersion") == "v1" and template.get("kind") == "Namespace"


def is_excluded(federated: Mapping[str, Any], exclude: re.Pattern[str] | None) -> bool:
    """Say whether the namespace stays where it is: a system one, one that opted out, or one that `exclude` finds."""
    name = str(federated["spec"]["template"]["metadata"].get("name", ""))
    annotations = federated["metadata"].get("annotations") or {}
    return (
        name.startswith("kube-")
        or name == names.SYSTEM_NAMESPACE
        or annotations.get(names.NO_AUTO_PROPAGATION) == "true"
        or (exclude is not None and exclude.search(name) is not None)
    )


def target_clusters(federated: Mapping[str, Any], clusters: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the clusters for the namespace, sorted: those that have joined, and those where it is already.

    A cluster that is leaving or gone is left out. One that was joined once stays, whatever its condition says now:
    nothing is withdrawn because a cluster does not answer.
    """
    placed = _placed(federated)
    return sorted(
        str(cluster["metadata"]["name"])
        for cluster in clusters
        if not cluster["metadata"].get("deletionTimestamp")
        and (cluster["metadata"]["name"] in placed or _has_joined(cluster))
    )


def _has_joined(cluster: Mapping[str, Any]) -> bool:
    return conditions.is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED)


def _placed(federated: Mapping[str, Any]) -> Collection[str]:
    for entry in federated["spec"].get("placements") or ():
        if entry.get("controller") == names.NSAUTOPROP_CONTROLLER:
            return {reference["cluster"] for reference in entry.get("placement") or ()}
    return frozenset()


def plan_namespace(
    federated: Mapping[str, Any],
    clusters: Sequence[Mapping[str, Any]],
    stages: Sequence[Sequence[str]],
    exclude: re.Pattern[str] | None = None,
) -> Object | None:
    """Return the merge patch that places the namespace and ends the controller's turn, None when nothing changes.

    `clusters` are all FederatedClusters, `stages` the type's pipeline. An excluded namespace keeps the placement that
    it has. A cluster that left is not recorded as departed: leaving a federation must not delete the namespaces there.
    """
    metadata = federated["metadata"]
    held = metadata.get("annotations") or {}
    annotations: dict[str, str | None] = {}
    placement: list[str] | None = None
    if not is_excluded(federated, exclude):
        annotations = {key: value for key, value in _ADOPT_ANNOTATIONS.items() if held.get(key) != value}
        wanted = target_clusters(federated, clusters)
        placement = wanted if set(wanted) != set(_placed(federated)) else None
    is_changed = bool(annotations) or placement is not None
    pending = pipeline.pending(federated)
    after = pipeline.after_acting(
        pending, names.NSAUTOPROP_CONTROLLER, is_changed=is_changed, pipeline=pipeline.effective(federated, stages)
    )
    if after != pending:
        annotations[names.PENDING_CONTROLLERS] = pipeline.to_annotation(after)
    if not (is_changed or annotations):
        return None
    patch: Object = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}}
    if placement is not None:
        patch["spec"] = {"placements": _replaced(federated, placement)}
    return patch


def _replaced(federated: Mapping[str, Any], clusters: Sequence[str]) -> list[Object]:
    others = [
        entry
        for entry in federated["spec"].get("placements") or ()
        if entry.get("controller") != names.NSAUTOPROP_CONTROLLER
    ]
    if not clusters:
        return others
    placement = [{"cluster": cluster} for cluster in clusters]
    return [*others, {"controller": names.NSAUTOPROP_CONTROLLER, "placement": placement}]
