"""Snapshots of all clusters for scheduling.

A FederatedCluster changes every few seconds (heartbeats), its fields that matter for scheduling hardly ever.
`ClusterCache` keeps a `Cluster` until such a field changes, so that values computed from it stay valid until then.
Pure: the caller watches FederatedClusters and calls `update` and `remove`. Read `engine.py` next.

Decision: docs/decisions/0070-reports-change-resources-only.md
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from hashlib import blake2b
from operator import itemgetter, mul
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery import conditions, quantity
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.textcache import cache_short
from federation.planning.clusters.devicekinds import kinds_of
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.columns import Columns
from federation.scheduling.framework.costs import has_rates
from federation.scheduling.framework.types import (
    CPU,
    Cluster,
    ClusterChange,
    Effect,
    GroupVersionKind,
    NodeClass,
    Resources,
    Taint,
)


@dataclass(frozen=True)
class Snapshot:
    """Joined clusters by name. `generation` changes with every change except of resources, which change constantly.

    `lasting` caches values that do not depend on resources; snapshots of one generation share it. Within a `project`
    it has the project's clusters, and `left`: those that left the project and still have the object, with the reasons.
    """

    generation: int
    clusters: tuple[Cluster, ...]
    lasting: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    project: str = ""
    left: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def content_hash(self) -> str:
        """The hash of all clusters' relevant fields; only changed clusters are hashed again."""
        return blake2b(b"".join(self.group.column(digest_of, digest_of)), digest_size=8).hexdigest()

    @cached_property
    def group(self) -> ClusterGroup:
        """The clusters with values computed from all of them."""
        return ClusterGroup.of(self.clusters, self.lasting)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the clusters."""
        return self.group.names

    @property
    def by_name(self) -> Mapping[str, Cluster]:
        """The clusters by name."""
        return self.group.by_name

    @cached_property
    def with_taint_times(self) -> tuple[Cluster, ...]:
        """The clusters with NoExecute taints that can be tolerated for a time; usually none."""
        positions: list[int] | None = self.lasting.get("taint times")
        if positions is None:
            positions = [at for at, cluster in enumerate(self.clusters) if cluster.taint_times]
            self.lasting["taint times"] = positions
        return tuple([self.clusters[at] for at in positions])

    @property
    def has_rates(self) -> bool:
        """Whether any cluster has a price or emissions; usually none."""
        known: bool | None = self.lasting.get("rates")
        if known is None:
            known = self.lasting["rates"] = any(map(has_rates, self.clusters))
        return known

    def resolve(self, name: str) -> str:
        """Return the cluster's real name for a name that a user wrote.

        Kubernetes names are lower case, but published KubeAdmiral manifests contain names like `Cluster-01`. A name
        that exists only in lower case is resolved to that cluster; any other is unchanged.
        """
        if name in self.by_name:
            return name
        lowered = name.lower()
        return lowered if lowered in self.by_name else name


class ClusterCache:
    """All FederatedClusters, converted once per relevant change."""

    def __init__(self) -> None:
        self._clusters: dict[str, Cluster] = {}
        self._snapshot: Snapshot | None = None
        self._columns: Columns | None = None
        self._positions: dict[str, int] = {}
        self._generation = 0
        self._lasting: dict[str, Any] = {}

    def update(self, source: Mapping[str, Any]) -> ClusterChange:
        """Add or update a FederatedCluster; return its changes."""
        old = self._clusters.get(str((source.get("metadata") or {}).get("name", "")))
        cluster = to_cluster(source, old)
        change = compare(old, cluster)
        if old is None or change:
            if old is not None and change is ClusterChange.RESOURCES:
                object.__setattr__(cluster, "lasting", old.lasting)  # nobody else has it yet
            self._clusters[cluster.name] = cluster
            self._forget(cluster, change)
        return change

    def remove(self, name: str) -> ClusterChange:
        """Remove a deleted FederatedCluster."""
        cluster = self._clusters.pop(name, None)
        if cluster is None:
            return ClusterChange.NOTHING
        self._forget(cluster, ClusterChange.MEMBERSHIP)
        return ClusterChange.MEMBERSHIP if cluster.is_joined else ClusterChange.NOTHING

    def labels(self) -> dict[str, Mapping[str, str]]:
        """Return the labels of all clusters by name, joined or not."""
        return {name: cluster.labels for name, cluster in self._clusters.items()}

    def free_on_nodes(self, name: str) -> Resources:
        """Return what is free on the nodes of a cluster; what is available in it if nothing is known of its nodes.

        What is available is less by pods that have no node yet. A decision looks at nodes, so an assumed pod must count
        until it has one.
        """
        cluster = self._clusters.get(name)
        if cluster is None or cluster.node_classes is None:
            return cluster.available if cluster is not None else {}
        free: dict[str, int] = {}
        for each in cluster.node_classes:
            for resource, amounts in each.free.items():
                free[resource] = free.get(resource, 0) + sum(map(mul, each.nodes, amounts))
        return free

    def is_ready(self, name: str) -> bool:
        """Return whether the cluster exists, has joined and is ready."""
        cluster = self._clusters.get(name)
        return cluster is not None and cluster.is_joined and cluster.is_ready

    def snapshot(self) -> Snapshot:
        """Return the joined clusters; the same object until something changes."""
        if self._snapshot is None:
            if self._columns is None:
                joined = sorted(name for name, cluster in self._clusters.items() if cluster.is_joined)
                self._positions = {name: at for at, name in enumerate(joined)}
                self._columns = Columns([self._clusters[name] for name in joined])
            clusters = ClusterGroup.newest(self._columns, self._lasting)
            self._snapshot = Snapshot(self._generation, clusters, self._lasting)
        return self._snapshot

    def release(self) -> None:
        """Forget the newest snapshot and what was computed from it, which refers to it; then no cycle is left."""
        if self._snapshot is not None:
            self._snapshot.group.release()
            self._snapshot = None

    def _forget(self, cluster: Cluster, change: ClusterChange) -> None:
        self.release()
        if change is not ClusterChange.RESOURCES:
            self._generation += 1
            self._lasting = {}
        if not change or ClusterChange.MEMBERSHIP in change:
            self._columns = None
        elif self._columns is not None and cluster.is_joined:
            # Computed with the report, to keep the cost out of the next decision.
            self._columns.replace(self._positions[cluster.name], cluster)


def compare(old: Cluster | None, new: Cluster) -> ClusterChange:
    """Return the changes between two versions of a cluster; only membership counts unless it has joined."""
    if old is None or old.is_joined != new.is_joined:
        was_joined = old is not None and old.is_joined
        return ClusterChange.MEMBERSHIP if was_joined or new.is_joined else ClusterChange.NOTHING
    change = ClusterChange.NOTHING
    if old.labels != new.labels:
        change |= ClusterChange.LABELS
    if (old.taints, old.taint_times) != (new.taints, new.taint_times):
        is_health = _lasting_taints(old) == _lasting_taints(new)
        change |= ClusterChange.READINESS if is_health else ClusterChange.TAINTS
    if old.api_types is not new.api_types and old.api_types != new.api_types:
        change |= ClusterChange.API_TYPES
    if (old.is_ready, old.is_silent) != (new.is_ready, new.is_silent):
        change |= ClusterChange.READINESS
    if old.is_terminating != new.is_terminating:
        change |= ClusterChange.TERMINATION
    if _resources(old) != _resources(new) or old.omitted_node_labels != new.omitted_node_labels:
        change |= ClusterChange.RESOURCES
    if _annotations(old) != _annotations(new):
        change |= ClusterChange.ANNOTATIONS
    return change


def _lasting_taints(cluster: Cluster) -> list[tuple[Taint, datetime | None]]:
    """Return the taints, with their times, that do not follow the cluster's health."""
    times = cluster.taint_times
    return [(taint, times.get(taint)) for taint in cluster.taints if taint.key not in names.HEALTH_TAINTS]


def changes(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, ClusterChange]]:
    """Yield the clusters that differ between two snapshots, with their changes."""
    if before is after:
        return
    for name in before.by_name.keys() | after.by_name.keys():
        old, new = before.by_name.get(name), after.by_name.get(name)
        if new is None or old is None:
            yield name, ClusterChange.MEMBERSHIP
        elif old is not new:
            yield name, compare(old, new)


def digest_of(cluster: Cluster) -> bytes:
    """Return the hash of the cluster's relevant fields, memoized."""
    known: bytes | None = cluster.memo.get(digest_of)
    if known is None:
        content = (
            cluster.name,
            cluster.labels,
            _annotations(cluster),
            cluster.taints,
            sorted(cluster.api_types),
            (cluster.is_ready, cluster.is_silent, cluster.is_terminating),
            _resources(cluster),
            sorted(cluster.omitted_node_labels),
        )
        digest = blake2b(orjson.dumps(content, default=list, option=orjson.OPT_SORT_KEYS), digest_size=8).digest()
        known = cluster.memoize(digest_of, digest)
    return known


def _resources(cluster: Cluster) -> tuple[Any, ...]:
    kinds = [(name, kind.digest, kind.classes, kind.displaced) for name, kind in cluster.devices.items()]
    return cluster.allocatable, cluster.available, cluster.waiting, cluster.node_classes, kinds


def _annotations(cluster: Cluster) -> Mapping[str, str]:
    return (cluster.source.get("metadata") or {}).get("annotations") or {}


def to_cluster(source: Mapping[str, Any], before: Cluster | None = None) -> Cluster:
    """Return the scheduler's view of a FederatedCluster. What did not change is taken from the view `before`."""
    metadata, status = source.get("metadata") or {}, source.get("status") or {}
    resources, stated = status.get("resources") or {}, status.get("conditions")
    taints, types = (source.get("spec") or {}).get("taints") or (), status.get("apiResourceTypes") or ()
    known = {} if before is None else before.source.get("status") or {}
    same_types = before is not None and (known.get("apiResourceTypes") or ()) == types
    reported = known.get("resources") or {}
    is_alike = (
        before is not None
        and known.get("conditions") == stated
        and ((before.source.get("spec") or {}).get("taints") or ()) == taints
    )
    if before is not None and is_alike:
        is_joined, is_ready, is_silent = before.is_joined, before.is_ready, before.is_silent
        read_taints, taint_times = before.taints, before.taint_times
    else:
        is_joined = conditions.is_true(stated, names.CLUSTER_JOINED)
        is_ready = conditions.is_true(stated, names.CLUSTER_READY) and not _has_health_taint(taints)
        is_silent = not is_ready and conditions.find(stated, names.CLUSTER_READY) is not None
        read_taints, taint_times = tuple(map(to_taint, taints)), _to_taint_times(taints) if taints else {}
    same_total = before is not None and reported.get("allocatable") == resources.get("allocatable")
    return Cluster(
        name=str(metadata.get("name", "")),
        labels=metadata.get("labels") or {},
        taints=read_taints,
        taint_times=taint_times,
        api_types=before.api_types if before and same_types else frozenset(map(_to_gvk, types)),
        is_joined=is_joined,
        is_ready=is_ready,
        is_silent=is_silent,
        is_terminating=bool(metadata.get("deletionTimestamp")),
        allocatable=before.allocatable if before and same_total else _at_least_0(resources.get("allocatable")),
        available=to_resources(resources.get("available")),
        node_classes=_to_node_classes(resources.get("nodeClasses")),
        omitted_node_labels=frozenset(resources.get("omittedNodeLabels") or ()),
        devices=kinds_of(devices) if (devices := resources.get("devices")) else {},
        waiting=_at_least_0(waiting) if (waiting := resources.get("waiting")) else {},
        source=source,
    )


def _has_health_taint(taints: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the cluster has not been released yet after its return: its readiness comes before that."""
    return any(taint.get("key") in names.HEALTH_TAINTS for taint in taints)


def to_taint(taint: Mapping[str, Any]) -> Taint:
    """Return a taint without `timeAdded`."""
    return Taint(str(taint.get("key") or ""), str(taint.get("value") or ""), str(taint.get("effect") or ""))


def _to_taint_times(taints: Iterable[Mapping[str, Any]]) -> dict[Taint, datetime]:
    """Return when the NoExecute taints were added; those without a readable `timeAdded` are left out."""
    times = {}
    for taint in taints:
        if taint.get("effect") == Effect.NO_EXECUTE and taint.get("timeAdded"):
            with contextlib.suppress(ValueError):
                times[to_taint(taint)] = from_rfc3339(str(taint["timeAdded"]))
    return times


def to_resources(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Return a ResourceList in integers: `cpu` in thousandths, the rest in whole units, rounded up.

    A quantity that cannot be parsed is left out.
    """
    amounts: dict[str, int] = {}
    for name, value in (quantities or {}).items():
        try:
            # Clusters report the same texts again and again, hundreds at a time: one lookup for each.
            if value.__class__ is str:
                amounts[name] = _thousandths(value) if name == CPU else _whole(value)
            else:
                amount = quantity.to_milli(value) if name == CPU else quantity.to_int_ceil(value)
                amounts[name] = quantity.to_int64(amount)
        except ValueError:
            continue
    return amounts


@cache_short(8192, chars_max=32)
def _thousandths(text: str) -> int:
    return quantity.to_int64(quantity.to_milli(text))


@cache_short(8192, chars_max=32)
def _whole(text: str) -> int:
    return quantity.to_int64(quantity.to_int_ceil(text))


def _at_least_0(quantities: Mapping[str, Any] | None) -> dict[str, int]:
    """Return a ResourceList without negative amounts; only available resources can be negative.

    Weights are computed from it, and with a negative weight the planner would not terminate.
    """
    return {name: max(0, amount) for name, amount in to_resources(quantities).items()}


def _to_node_classes(classes: Iterable[Mapping[str, Any]] | None) -> tuple[NodeClass, ...] | None:
    if classes is None:
        return None
    return tuple(map(_to_node_class, classes))


def _to_node_class(entry: Mapping[str, Any]) -> NodeClass:
    groups = entry.get("free") or ()
    return NodeClass(
        labels=entry.get("labels") or {},
        taints=tuple(map(to_taint, entry.get("taints") or ())),
        largest=_at_least_0(entry.get("largest")),
        nodes=_to_sizes([group["nodes"] for group in groups]),
        free=_to_columns([group["resources"] for group in groups]),
        size=max(0, int(entry.get("nodes") or 0)),
    )


def _to_sizes(numbers: Sequence[Any]) -> tuple[int, ...]:
    if set(map(type, numbers)) == {int} and min(numbers) >= 0:
        return tuple(numbers)
    return tuple([max(0, int(number)) for number in numbers])


def _to_columns(groups: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
    """Return the amounts of each resource in all groups of nodes, none below 0.

    Nearly always each group has the same resources, as texts: then a column is read without a step per amount.
    """
    try:
        if sum(map(len, groups)) == len(groups[0]) * len(groups):
            columns = {
                name: tuple(map(_thousandths if name == CPU else _whole, map(itemgetter(name), groups)))
                for name in groups[0]
            }
            return {
                name: amounts if min(amounts) >= 0 else tuple([max(0, amount) for amount in amounts])
                for name, amounts in columns.items()
            }
    except (LookupError, TypeError, ValueError):
        pass
    read = [to_resources(each) for each in groups]
    return {
        name: tuple([max(0, free.get(name, 0)) for free in read])
        for name in dict.fromkeys(name for free in read for name in free)
    }


def _to_gvk(entry: Mapping[str, Any]) -> GroupVersionKind:
    return GroupVersionKind(entry.get("group") or "", entry.get("version") or "", entry.get("kind") or "")
