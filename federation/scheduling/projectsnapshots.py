"""Snapshots without the clusters outside an object's project: to a decision they do not exist.

A cluster that has the object and left the project is still in the object's snapshot, and the object leaves it as it
leaves a drained cluster (`unit.py`, `failover.py`). Pure.

Reference: docs/reference/projects.md.
Decision: docs/decisions/0156-clusters-outside-a-project-do-not-exist.md
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.planning.federatedobject.placements import effective_placement
from federation.planning.projects.projectindex import Project, ProjectIndex, namespace_of
from federation.scheduling.snapshot import ClusterCache, Snapshot

_KEPT_MAX = 256
"""Snapshots that are kept; the oldest is removed when it is exceeded."""


@dataclass(frozen=True, slots=True)
class _Kept:
    project: Project
    whole: Snapshot
    snapshot: Snapshot


class ProjectSnapshots:
    """The clusters as each object may see them. The snapshot of an object outside all projects has all clusters."""

    def __init__(self, clusters: ClusterCache) -> None:
        self._clusters = clusters
        self.projects = ProjectIndex()
        self._kept: dict[tuple[str, frozenset[str]], _Kept] = {}

    def of(self, federated: Mapping[str, Any]) -> Snapshot:
        """Return the clusters for a decision about the object; the same snapshot until something changes."""
        inside, whole = self.within(namespace_of(federated)), self._clusters.snapshot()
        project = self.projects.get(inside.project) if inside is not whole else None
        if project is None:
            return whole
        left = frozenset(whole.by_name.keys() & effective_placement(federated) - inside.by_name.keys())
        return self._snapshot(whole, project, left) if left else inside

    def within(self, namespace: str) -> Snapshot:
        """Return the clusters that exist for a namespace; the same snapshot until something changes."""
        whole = self._clusters.snapshot()
        project = self.projects.of(namespace) if len(self.projects) else None
        return whole if project is None else self._snapshot(whole, project, frozenset())

    def newest(self, snapshot: Snapshot) -> Snapshot:
        """Return the same clusters as they are now."""
        whole, project = self._clusters.snapshot(), self.projects.get(snapshot.project)
        return whole if project is None else self._snapshot(whole, project, frozenset(snapshot.left))

    def labels(self, namespace: str) -> dict[str, Mapping[str, str]]:
        """Return the labels of the clusters that a policy of the namespace may name, by name."""
        labels, project = self._clusters.labels(), self.projects.of(namespace)
        if project is None:
            return labels
        return {name: each for name, each in labels.items() if project.has(name, each)}

    def _snapshot(self, whole: Snapshot, project: Project, left: frozenset[str]) -> Snapshot:
        key = (project.name, left)
        known = self._kept.get(key)
        if known is not None and known.project is project and known.whole is whole:
            return known.snapshot
        clusters = tuple([each for each in whole.clusters if each.name in left or project.has(each.name, each.labels)])
        is_like = known is not None and known.project is project and known.whole.generation == whole.generation
        reasons = {name: f"project {project.name} does not have cluster {name} any more" for name in sorted(left)}
        lasting = known.snapshot.lasting if known is not None and is_like else {}
        snapshot = Snapshot(whole.generation, clusters, lasting, project.name, reasons)
        if known is None and len(self._kept) >= _KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = _Kept(project, whole, snapshot)
        return snapshot
