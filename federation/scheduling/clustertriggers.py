"""The clusters' part of scheduling triggers.

An object's triggers have the names of the clusters, and one hash each over all their labels, taints and API types: some
kilobytes with hundreds of clusters. KubeAdmiral writes a hash per cluster and kind of change, ten times as much; that
form is read, and written on request. Hashes are compared over the clusters of the last decision, so that a new cluster
does not change them. Pure. Read `triggers.py` next.

Decision: docs/decisions/0022-short-triggers.md
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from federation.api import names
from federation.scheduling.framework.types import Cluster, Taint
from federation.scheduling.policyspec import hash_of
from federation.scheduling.snapshot import Snapshot

API_TYPES, LABELS, TAINTS = KINDS = ("clusterAPIResourceTypesHashes", "clusterLabelsHashes", "clusterTaintsHashes")
"""The parts of a cluster that count, by KubeAdmiral's fields: each is a map of clusters to hashes."""
CLUSTERS = "clusters"
"""The field with the usable clusters: joined and (except in KubeAdmiral) ready."""
_UNREADY = "clustersUnready"
_SHORT = tuple(kind.removesuffix("es") for kind in KINDS)
"""Our fields: each is one hash over all clusters."""

_PROJECTS_MAX = 256
"""Projects whose triggers are kept."""
Hashes = tuple[str, str, str]
"""Hashes of one cluster or of several, in the order of KINDS."""


@dataclass(frozen=True, slots=True)
class ClusterTriggers:
    """The joined clusters of a snapshot: hashes by name, in order, and the usable ones.

    `text` is their part of the triggers' JSON object, without braces.
    """

    hashes: Mapping[str, Hashes]
    usable: Sequence[str]
    text: str = ""

    def changes_since(self, old: Mapping[str, Any]) -> set[str]:
        """Return the KINDS that changed or lost a cluster, and CLUSTERS when there are new usable ones.

        `old` are triggers in any form that `is_readable`.
        """
        changed = set() if set(old.get(CLUSTERS) or ()).issuperset(self.usable) else {CLUSTERS}
        if _SHORT[0] not in old:
            for index, kind in enumerate(KINDS):
                if cluster_trigger_changed({name: each[index] for name, each in self.hashes.items()}, old.get(kind)):
                    changed.add(kind)
            return changed
        known = sorted((*(old.get(CLUSTERS) or ()), *(old.get(_UNREADY) or ())))
        if not self.hashes.keys() >= set(known):
            return changed.union(KINDS)
        now = _over(map(self.hashes.__getitem__, known))
        return changed.union(kind for kind, short, each in zip(KINDS, _SHORT, now, strict=True) if old[short] != each)

    def has_only_returned(self, old: Mapping[str, Any]) -> bool:
        """Return whether every usable cluster was known at the last decision, those that were not ready included."""
        return {*(old.get(CLUSTERS) or ()), *(old.get(_UNREADY) or ())}.issuperset(self.usable)

    def as_if_unchanged_since(self, names: Iterable[str]) -> dict[str, Any]:
        """Return our fields for a decision with these clusters, as if they were unchanged."""
        known = sorted(names)
        hashes = _over(self.hashes[name] for name in known if name in self.hashes)
        return {**dict(zip(_SHORT, hashes, strict=True)), CLUSTERS: known}


def cluster_part(text: str) -> tuple[int, int]:
    """Return where the clusters' part of a text of triggers in our form begins and ends, with a comma; (0, 0) for none.

    Most objects of a fleet have the same one.
    """
    begin = text.find(f'"{_SHORT[0]}":')
    end = text.find("],", begin) + 2 if begin >= 0 else 0
    if end > 2 and text.startswith(f'"{_UNREADY}":', end):
        end = text.find("],", end) + 2
    return (begin, end) if end > 2 else (0, 0)


def is_readable(old: Mapping[str, Any]) -> bool:
    """Return whether stored triggers have a known form."""
    names = (old.get(field) or [] for field in (CLUSTERS, _UNREADY))
    if not all(isinstance(each, list) and all(isinstance(name, str) for name in each) for each in names):
        return False
    if _SHORT[0] in old:
        return all(isinstance(old.get(field), str) for field in _SHORT)
    return all(isinstance(old.get(kind) or {}, dict) for kind in KINDS)


def cluster_trigger_changed(new: Mapping[str, str], old: Mapping[str, str] | None) -> bool:
    """Return whether a known cluster changed or was removed; new clusters do not count."""
    return any(new.get(cluster) != value for cluster, value in (old or {}).items())


class ClusterTriggerSource:
    """Caches the triggers of the newest snapshot of each project; only changed clusters are hashed again.

    `as_kubeadmiral`: write its form, in which a cluster is usable as soon as it has joined.
    """

    def __init__(self, *, as_kubeadmiral: bool = False) -> None:
        self._as_kubeadmiral = as_kubeadmiral
        self._hashes: dict[str, tuple[Cluster, Hashes]] = {}
        self._states: dict[str, tuple[dict[str, Any], ClusterTriggers]] = {}

    def state(self, snapshot: Snapshot) -> ClusterTriggers:
        """Return the triggers; the same object until they change."""
        lasting, state = self._states.get(snapshot.project) or (None, None)
        if state is None or snapshot.lasting is not lasting:
            clusters = [cluster for cluster in snapshot.clusters if cluster.name not in snapshot.left]
            hashes = {cluster.name: self._hashes_of(cluster) for cluster in clusters}
            usable = [cluster.name for cluster in clusters if cluster.is_ready or self._as_kubeadmiral]
            if state is None or hashes != state.hashes or usable != state.usable:
                state = ClusterTriggers(hashes, usable, self._text(hashes, usable))
            if snapshot.project not in self._states and len(self._states) >= _PROJECTS_MAX:
                del self._states[next(iter(self._states))]
            self._states[snapshot.project] = snapshot.lasting, state
            if not snapshot.project:
                self._hashes = {name: entry for name, entry in self._hashes.items() if name in hashes}
        return state

    def _text(self, hashes: Mapping[str, Hashes], usable: Sequence[str]) -> str:
        parts: dict[str, Any]
        if self._as_kubeadmiral:
            parts = {kind: {name: each[at] for name, each in hashes.items()} for at, kind in enumerate(KINDS)}
        else:
            parts = dict(zip(_SHORT, _over(hashes.values()), strict=True))
        parts[CLUSTERS] = usable
        if len(usable) < len(hashes):
            parts[_UNREADY] = sorted(hashes.keys() - set(usable))
        return orjson.dumps(parts).decode()[1:-1]

    def _hashes_of(self, cluster: Cluster) -> Hashes:
        known = self._hashes.get(cluster.name)
        if known is not None and known[0] is cluster:
            return known[1]
        old, (types, labels, taints) = known if known is not None else (None, ("", "", ""))
        hashes = (
            types if old and old.api_types == cluster.api_types else hash_of(sorted(map(list, cluster.api_types))),
            labels if old and old.labels == cluster.labels else hash_of(cluster.labels),
            taints if old and old.taints == cluster.taints else _hash_of_taints(cluster.taints),
        )
        self._hashes[cluster.name] = (cluster, hashes)
        return hashes


def _hash_of_taints(taints: Iterable[Taint]) -> str:
    """Return the hash of the taints that do not follow the cluster's health: objects elsewhere need no new decision."""
    return hash_of(sorted(list(taint) for taint in taints if taint.key not in names.HEALTH_TAINTS))


def _over(hashes: Iterable[Hashes]) -> Hashes:
    """Return one hash per kind over several clusters, which are sorted by name."""
    types, labels, taints = zip(*hashes, strict=True) if (hashes := tuple(hashes)) else ((), (), ())
    return _digest(types), _digest(labels), _digest(taints)


def _digest(hashes: Iterable[str]) -> str:
    return blake2b(",".join(hashes).encode(), digest_size=8).hexdigest()
