"""Builders and one-line drivers for tests of scheduler plugins.

Part of the public plugin API: third-party plugins are tested in the same way as built-in ones.

    cluster = a_cluster("east").labelled(region="eu").tainted("dedicated", "gpu").built()
    status = run_filter(MyPlugin(), a_unit(tolerations=()), cluster)

The product never imports this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, Self

from federation.apimachinery import quantity
from federation.scheduling.framework.admittedclusters import ADMITTED_TO
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.division import SUBSETS
from federation.scheduling.framework.groupcounts import GROUP_LIMITS
from federation.scheduling.framework.interfaces import FilterPlugin, ReplicasPlugin, ScorePlugin, SelectPlugin
from federation.scheduling.framework.migrations import AUTO_MIGRATION, CUSTOM_MIGRATION
from federation.scheduling.framework.moving import AVOIDED, CHOOSES_ANEW, ENDED_TOLERATIONS, HOMES
from federation.scheduling.framework.policygroups import GROUP_MOVE, GROUPS
from federation.scheduling.framework.quotaheadroom import QUOTA
from federation.scheduling.framework.relations import RELATIONS
from federation.scheduling.framework.topology import TOPOLOGY_SPREAD
from federation.scheduling.framework.types import (
    CPU,
    Cluster,
    ClusterScore,
    Division,
    GroupVersionKind,
    NodeClass,
    SchedulingMode,
    SchedulingUnit,
    Status,
    Taint,
    error,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
_FIELDS = frozenset(field.name for field in fields(SchedulingUnit))
_PARTS = ("pods", "affinity", "preferences")
_SHAPES = frozenset(
    each.name
    for each in (
        *(ADMITTED_TO, AUTO_MIGRATION, AVOIDED, CHOOSES_ANEW, CUSTOM_MIGRATION, ENDED_TOLERATIONS, GROUP_LIMITS),
        *(GROUP_MOVE, GROUPS, HOMES, QUOTA, RELATIONS, SUBSETS, TOPOLOGY_SPREAD),
    )
)


class ClusterBuilder:
    """A joined, ready cluster that serves Deployments; each method changes one field and returns the builder."""

    def __init__(self, name: str) -> None:
        self._cluster = Cluster(name, api_types=frozenset({DEPLOYMENT}))

    def built(self) -> Cluster:
        """Return the cluster."""
        return self._cluster

    def labelled(self, **labels: str) -> Self:
        """Add labels."""
        return self._with(labels={**self._cluster.labels, **labels})

    def tainted(self, key: str, value: str = "", effect: str = "NoSchedule", added: datetime | None = None) -> Self:
        """Add a taint, which was added at a time."""
        taint = Taint(key, value, effect)
        times = self._cluster.taint_times if added is None else {**self._cluster.taint_times, taint: added}
        return self._with(taints=(*self._cluster.taints, taint), taint_times=times)

    def serving(self, *kinds: GroupVersionKind) -> Self:
        """Set the served kinds."""
        return self._with(api_types=frozenset(kinds))

    def unready(self) -> Self:
        """Make it unready."""
        return self._with(is_ready=False, is_silent=True)

    def terminating(self) -> Self:
        """Mark it as being deleted."""
        return self._with(is_terminating=True)

    def offering(self, **quantities: str) -> Self:
        """Set allocatable resources, for instance `cpu="8"`; all of them are free unless `free` is called."""
        amounts = {name: _amount(name, text) for name, text in quantities.items()}
        return self._with(allocatable=amounts, available=amounts)

    def free(self, **quantities: str) -> Self:
        """Set free resources."""
        amounts = {name: _amount(name, text) for name, text in quantities.items()}
        return self._with(available={**self._cluster.available, **amounts})

    def with_nodes(
        self, count: int, *, taints: Sequence[Taint] = (), labels: Mapping[str, str] | None = None, **free: str
    ) -> Self:
        """Add empty nodes with these free resources each, for instance `with_nodes(3, cpu="4")`, and 110 pods."""
        amounts = {"pods": 110, **{name: _amount(name, text) for name, text in free.items()}}
        added = NodeClass(
            labels or {}, tuple(taints), amounts, (count,), {name: (amount,) for name, amount in amounts.items()}
        )
        sums = dict(self._cluster.allocatable)
        for name in free:
            sums[name] = sums.get(name, 0) + count * amounts[name]
        classes = (*(self._cluster.node_classes or ()), added)
        return self._with(node_classes=classes, allocatable=sums, available=sums)

    def _with(self, **changes: Any) -> Self:
        self._cluster = replace(self._cluster, memo={}, lasting={}, **changes)
        return self


def a_cluster(name: str = "cluster") -> ClusterBuilder:
    """Return a builder; finish with `built()`."""
    return ClusterBuilder(name)


def a_unit(**changes: Any) -> SchedulingUnit:
    """Return the Deployment default/web with changes, as `changed_unit` makes them."""
    return changed_unit(
        SchedulingUnit(gvk=DEPLOYMENT, plural="deployments", namespace="default", name="web"), **changes
    )


def changed_unit(unit: SchedulingUnit, **changes: Any) -> SchedulingUnit:
    """Return the unit with changed fields, fields of its parts (`weights`, `required`, `is_gang`), and shapes by name.

    `sets` are pods, and a shape that is None is left out.
    """
    own = {name: value for name, value in changes.items() if name in _FIELDS}
    for part in _PARTS:
        value = own.get(part, getattr(unit, part))
        said = {field.name: changes[field.name] for field in fields(value) if field.name in changes}
        own |= {part: replace(value, **said)} if said else {}
    parts = {field.name for part in _PARTS for field in fields(getattr(unit, part))}
    shapes = {name: changes[name] for name in changes.keys() - _FIELDS - parts if changes[name] is not None}
    assert shapes.keys() <= _SHAPES, f"a unit has none of {sorted(shapes.keys() - _SHAPES)}"
    return replace(unit, **own | {"shapes": {**own.get("shapes", unit.shapes), **shapes}})


def a_divided_unit(replicas: int, **changes: Any) -> SchedulingUnit:
    """Return a unit in Divide mode with so many desired replicas."""
    return a_unit(mode=SchedulingMode.DIVIDE, desired_replicas=replicas, **changes)


def a_state(now: datetime = NOW) -> CycleState:
    """Return a new cycle state at a fixed time."""
    return CycleState(now)


def run_filter(plugin: FilterPlugin, unit: SchedulingUnit | None, cluster: Cluster | None) -> Status:
    """Run a filter for one cluster; a missing argument is an error in KubeAdmiral's words."""
    if unit is None:
        return error("invalid scheduling unit")
    if cluster is None:
        return error("invalid federated cluster")
    return plugin.filter(unit, cluster, a_state())


def run_score(plugin: ScorePlugin, unit: SchedulingUnit, clusters: Sequence[Cluster]) -> list[int]:
    """Return a plugin's scores for the clusters, normalized if it does that; AssertionError for a Status."""
    state = a_state()
    raw = [plugin.score(unit, cluster, state) for cluster in clusters]
    scores = [score for score in raw if not isinstance(score, Status)]
    assert len(scores) == len(raw), raw
    normalise = getattr(plugin, "normalise", None)
    return scores if normalise is None else list(normalise(unit, scores, state))


def run_select(
    plugin: SelectPlugin, unit: SchedulingUnit, scored: Sequence[ClusterScore]
) -> Sequence[ClusterScore] | Status:
    """Return the clusters that a select plugin selects."""
    return plugin.select(unit, scored, a_state())


def run_replicas(plugin: ReplicasPlugin, unit: SchedulingUnit, clusters: Sequence[Cluster]) -> Division | Status:
    """Return the division by a replicas plugin."""
    return plugin.replicas(unit, clusters, a_state())


def _amount(name: str, text: str) -> int:
    return quantity.to_milli(text) if name == CPU else quantity.to_int_ceil(text)
