"""Which workloads would start on empty volumes, and by which way out of a cluster. Pure.

`fedctl doctor --data` prints it. Each way is asked about with `permit_volumes`, the rule that decides about it when it
comes, so a way that a word opens in advance is found here before anything moves.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from federation.planning.guard.record import HeldMove
from federation.planning.guard.volumepermit import TRIGGERS, Departure, Way, permit_volumes


class Answer(StrEnum):
    """What happens when a workload would leave a cluster."""

    EMPTY = "StartsEmpty"
    """It starts with empty volumes in another cluster, without further questions."""
    HELD = "Held"
    """It would leave the cluster now, and waits for an approval."""
    APPROVED = "Approved"
    """It leaves the cluster now, because somebody approved it."""


@dataclass(frozen=True, slots=True)
class DataWorkload:
    """A workload with volumes that do not move."""

    name: str
    """Kind, namespace and name."""
    volumes: str
    clusters: AbstractSet[str]
    policy: str = ""
    fails_over: bool = False
    """Whether its policy lets it leave lost and drained clusters."""
    has_application_failover: bool = False
    held: HeldMove | None = None
    is_approved: bool = False
    is_placed: bool = True
    """Whether it has a place. One without has `clusters` from its hold: volumes of an earlier object are in them."""


class DataWay(NamedTuple):
    """One way by which a workload leaves its volumes in a cluster; `because` has the word, or what to do."""

    object: str
    cluster: str
    volumes: str
    way: str
    answer: Answer
    because: str


def find_data_ways(workloads: Iterable[DataWorkload], members: AbstractSet[str]) -> list[DataWay]:
    """Return what would start empty and what is held; `members` are the clusters that are joined and stay."""
    return sorted(way for workload in workloads for way in _ways_of(workload, members))


def _ways_of(workload: DataWorkload, members: AbstractSet[str]) -> Iterator[DataWay]:
    for cluster in sorted(workload.clusters):
        yield from _now(workload, cluster, members)
        if not workload.is_placed:
            continue
        opened: dict[str, list[Way]] = {}
        for way, facts in _possible(workload, cluster):
            for word in permit_volumes(facts).goes.values():
                opened.setdefault(f"{word} ({workload.policy})", []).append(way)
        for because, ways in opened.items():
            for way in dict.fromkeys(ways):
                yield DataWay(workload.name, cluster, workload.volumes, way, Answer.EMPTY, because)


def _now(workload: DataWorkload, cluster: str, members: AbstractSet[str]) -> Iterator[DataWay]:
    """Yield what takes the workload out of the cluster now."""
    name, volumes, held = workload.name, workload.volumes, workload.held
    if held is not None and cluster in held.clusters:
        if workload.is_approved:
            yield DataWay(name, cluster, volumes, str(held.cause), Answer.APPROVED, f"PlacementHold {held.hold}")
        else:
            command = f"fedctl approve {held.hold} --reason TEXT"
            yield DataWay(name, cluster, volumes, str(held.cause), Answer.HELD, f"until: {command}")
    elif cluster not in members:
        yield DataWay(name, cluster, volumes, Way.MEMBERSHIP, Answer.HELD, "the cluster is no member; join it again")


def _possible(workload: DataWorkload, cluster: str) -> Iterator[tuple[Way, Departure]]:
    """Yield the facts of each way by which the workload could leave the cluster."""
    before: Mapping[str, int | None] = dict.fromkeys(workload.clusters)
    base = Departure(workload.volumes, before, {}, fails_over=workload.fails_over)
    base = replace(base, after={name: None for name in before if name != cluster})
    this = frozenset({cluster})
    yield Way.PROJECT, replace(base, outside=this)
    yield Way.MEMBERSHIP, replace(base, departed=this)
    yield Way.LOSS, replace(base, evicting=this)
    if workload.has_application_failover:
        yield Way.APPLICATION, replace(base, unhealthy=this)
    for trigger, way in TRIGGERS.items():
        yield way, replace(base, changed=frozenset({trigger}))
