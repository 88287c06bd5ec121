"""The WorkloadSpreads of the host, as the scheduler asks for them (docs/reference/workloadspread.md).

A WorkloadSpread applies to the federated workload that its `targetRef` names, whatever the version. The scheduler does
not know its fields: the index of `features/workloadspread` reads them, once per object, and keeps the results. An
object without a WorkloadSpread costs one look-up. The quotas of a decision are stored with the placement, in an
annotation of the federated object. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from federation.api import names
from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.annotationrecords import AnnotationRecord, Count
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import SelectorError
from federation.planning.followers.leaderplan import identity_of
from federation.planning.followers.references import Identity
from federation.planning.placement.subsetquotas import (
    Counts,
    Quotas,
    SubsetClusters,
    SubsetSpread,
    attribute_replicas,
    by_cluster,
)
from federation.scheduling.framework.types import Toleration
from federation.scheduling.names import UNSCHEDULABLE_SUBSETS
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.worldobjects import Index, WorldObjects


class Spread(Protocol):
    """One WorkloadSpread, compiled for decisions. Methods are pure; `replicas` is the workload's number."""

    @property
    def name(self) -> str:
        """The name of the object."""
        ...

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """The tolerations of all subsets, which the pods of the workload may get."""
        ...

    def hash(self, template: Mapping[str, Any], replicas: int, snapshot: Snapshot) -> str:
        """Return a hash of everything that a division depends on, besides the replicas and the policy."""
        ...

    def subsets(self, template: Mapping[str, Any], replicas: int, snapshot: Snapshot) -> tuple[SubsetClusters, ...]:
        """Return the subsets in their order, with their caps and their clusters."""
        ...


class SpreadIndex(Index):
    """The WorkloadSpreads by the workload that they target. One per workload is in force: the first by name."""

    resource = WORKLOAD_SPREADS

    def __init__(self, compile_: Callable[[Object], Spread], target_of: Callable[[Object], Identity]) -> None:
        self._compile = compile_
        """Returns the compiled form; raises SelectorError or InvalidInput for a malformed or too large one."""
        self._target_of = target_of
        self._by_target: dict[Identity, dict[str, Spread]] = {}

    def affected(self, obj: Object, objects: WorldObjects) -> Iterable[Mapping[str, Any]]:
        """Return the workload that a WorkloadSpread targets."""
        found = objects.of_source(*self._target_of(obj))
        return () if found is None else (found,)

    def put(self, obj: Object) -> str:
        """Add a new WorkloadSpread; return why it has no effect, "" when it has one."""
        try:
            compiled = self._compile(obj)
        except (SelectorError, InvalidInput) as error:
            return str(error)
        self._by_target.setdefault(self._target_of(obj), {})[compiled.name] = compiled
        return ""

    def remove(self, obj: Object) -> None:
        """Remove a WorkloadSpread in the state in which it was added."""
        target = self._target_of(obj)
        held = self._by_target.get(target, {})
        held.pop(obj["metadata"]["name"], None)
        if not held:
            self._by_target.pop(target, None)

    def find(self, federated: Mapping[str, Any]) -> Spread | None:
        """Return the WorkloadSpread of a federated workload, None when it has none."""
        if not self._by_target:
            return None
        held = self._by_target.get(identity_of(federated))
        return held[min(held)] if held else None


def spread_of_unit(spread: Spread, federated: Mapping[str, Any], replicas: int, snapshot: Snapshot) -> SubsetSpread:
    """Return the subsets of a unit, with the quotas of its last decision."""
    return SubsetSpread(
        spread.name,
        spread.subsets(federated["spec"]["template"], replicas, snapshot),
        stored_quotas(federated),
        frozenset(cluster.name for cluster in snapshot.clusters if cluster.is_silent),
        stored_running(federated),
    )


class _Stored(msgspec.Struct):
    """The WorkloadSpread of the last decision: replicas by subset, and by cluster and subset."""

    name: str = ""
    caps: dict[str, int] = {}
    quotas: dict[str, dict[str, int]] = {}


_SPREAD = AnnotationRecord(names.WORKLOAD_SPREAD, _Stored)
UNSCHEDULABLE = AnnotationRecord(UNSCHEDULABLE_SUBSETS, dict[str, dict[str, Count]])


def stored_quotas(federated: Mapping[str, Any]) -> Quotas:
    """Return the quotas of the last decision by subset and cluster; {} without any."""
    turned: Quotas = {}
    for cluster, own in _stored(federated).quotas.items():
        for subset, count in own.items():
            turned.setdefault(subset, {})[cluster] = count
    return turned


def stored_caps(federated: Mapping[str, Any]) -> dict[str, int]:
    """Return the caps of the last decision by subset, without unlimited subsets."""
    return _stored(federated).caps


def stored_running(federated: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return by cluster and subset the replicas with a node, where a subset also has replicas without one."""
    return UNSCHEDULABLE.of(federated) or {}


def stored_name(federated: Mapping[str, Any]) -> str:
    """Return the name of the WorkloadSpread of the last decision, "" without one."""
    return _stored(federated).name


def to_annotation(spread: SubsetSpread | None, placements: Counts, planned: Mapping[str, Counts]) -> str | None:
    """Return the annotation for a placement: the quotas that were planned, as far as the placement has them."""
    if spread is None:
        return None
    quotas = attribute_replicas(spread.subsets, placements, planned or spread.held)
    return _SPREAD.text(_Stored(spread.name, spread.caps(), by_cluster(quotas)))


def _stored(federated: Mapping[str, Any]) -> _Stored:
    return _SPREAD.of(federated) or _Stored()
