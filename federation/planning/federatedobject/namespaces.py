"""Plan the placement of namespaces, which go to every member cluster of their project. Pure.

Reference: docs/reference/federation.md.

Workloads can exist only where their namespace does. A namespace that exists in a member is adopted, and adopted
namespaces are never deleted.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import (
    Part,
    placement_of,
    to_merge_patch,
    with_annotations,
    with_placement,
)
from federation.planning.projects.projectindex import Project, ProjectIndex, namespace_of

_NEVER_SYNCED = frozenset({"kube-system", "kube-public", "kube-node-lease", "default", names.SYSTEM_NAMESPACE})
"""Namespaces that every cluster has by itself."""
_ADOPT_ANNOTATIONS = {
    names.INTERNAL_CONFLICT_RESOLUTION: "adopt",
    names.INTERNAL_CLUSTERS_TO_ADOPT: '{"regexp":".*"}',
    names.INTERNAL_ORPHAN: "adopted",
}


def is_namespace(federated: Mapping[str, Any]) -> bool:
    """Return True if the source of the federated object is a v1 Namespace."""
    template = (federated.get("spec") or {}).get("template") or {}
    return template.get("apiVersion") == "v1" and template.get("kind") == "Namespace"


def is_never_synced(template: Mapping[str, Any]) -> bool:
    """Return True for the template of a namespace that members have by themselves: nothing of it is delivered."""
    return (
        template.get("apiVersion") == "v1"
        and template.get("kind") == "Namespace"
        and (template.get("metadata") or {}).get("name") in _NEVER_SYNCED
    )


def is_excluded(federated: Mapping[str, Any], exclude: re.Pattern[str] | None) -> bool:
    """Return True for a system namespace, one that opted out, or one that `exclude` finds."""
    name = str(federated["spec"]["template"]["metadata"].get("name", ""))
    annotations = federated["metadata"].get("annotations") or {}
    return (
        name.startswith("kube-")
        or name == names.SYSTEM_NAMESPACE
        or annotations.get(names.NO_AUTO_PROPAGATION) == "true"
        or (exclude is not None and exclude.search(name) is not None)
    )


def target_clusters(
    federated: Mapping[str, Any], clusters: Sequence[Mapping[str, Any]], projects: ProjectIndex | None = None
) -> list[str]:
    """Return the clusters for the namespace, sorted: all joined ones of its project, and those that have it.

    Clusters that are being deleted are not included. A cluster that joined once stays even if its condition is no
    longer True: an unreachable cluster loses nothing.
    """
    placed = placement_of(federated, names.NSAUTOPROP_CONTROLLER)
    project = projects.of(namespace_of(federated)) if projects is not None else None
    return sorted(
        str(cluster["metadata"]["name"])
        for cluster in clusters
        if not cluster["metadata"].get("deletionTimestamp")
        and (cluster["metadata"]["name"] in placed or (_has_joined(cluster) and _is_in(project, cluster)))
    )


def _is_in(project: Project | None, cluster: Mapping[str, Any]) -> bool:
    metadata = cluster["metadata"]
    return project is None or project.has(metadata["name"], metadata.get("labels") or {})


def _has_joined(cluster: Mapping[str, Any]) -> bool:
    return conditions.is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED)


def plan_namespace(
    federated: Mapping[str, Any],
    clusters: Sequence[Mapping[str, Any]],
    stages: Sequence[Sequence[str]],
    exclude: re.Pattern[str] | None = None,
    projects: ProjectIndex | None = None,
) -> Part | None:
    """Return the merge patch that places the namespace and advances the pipeline, None when nothing changes.

    `clusters` are all FederatedClusters, `stages` the type's pipeline. An excluded namespace keeps its placement. A
    cluster that leaves is not recorded as departed, because its namespaces must not be deleted.
    """
    placement: Part = {}
    adoption: dict[str, str | None] = {}
    if not is_excluded(federated, exclude):
        adoption |= _ADOPT_ANNOTATIONS
        wanted = target_clusters(federated, clusters, projects)
        if set(wanted) != set(placement_of(federated, names.NSAUTOPROP_CONTROLLER)):
            placement = with_placement(federated, names.NSAUTOPROP_CONTROLLER, wanted, records_departed=False)
    annotations = with_annotations(federated, adoption)
    pending = pendingcontrollers.pending_stages(federated)
    after = pendingcontrollers.advance(
        pending,
        names.NSAUTOPROP_CONTROLLER,
        is_changed=bool(placement or annotations),
        pipeline=pendingcontrollers.without_idle(federated, stages),
    )
    advanced = {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(after)} if after != pending else {}
    return to_merge_patch(federated, placement, annotations, with_annotations(federated, advanced))
