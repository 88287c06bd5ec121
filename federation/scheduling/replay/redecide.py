"""Decide recorded decisions again and compare the outcomes bit for bit.

The same code decides: `assess` and the engine, with the objects, clusters, policies and answers of plugins as they
were. A difference means that the program, or an installed plugin, is another one than that which decided, or that a
decision depended on something that is not recorded.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.planning.accounts.claim import Use
from federation.scheduling.answers import Due
from federation.scheduling.assessment import assess
from federation.scheduling.attempt import SchedulingAttempt, start_attempt
from federation.scheduling.chain import Chain
from federation.scheduling.engine import Decision, Placements
from federation.scheduling.framework.quotaheadroom import Headroom, amounts_of, scope_of
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import Cluster, Exchange, PluginResponse, SchedulingUnit
from federation.scheduling.occasions import Occasion, Surroundings
from federation.scheduling.pendingreplicas import completed
from federation.scheduling.quotas import replica_counts
from federation.scheduling.replay.logentries import (
    Answer,
    AssumedChange,
    Decided,
    Entry,
    Header,
    Key,
    QuotaUse,
    Result,
    WorldChange,
    from_difference,
    from_us,
    placed_by,
    restored,
    result_of,
)
from federation.scheduling.replay.projection import to_federated
from federation.scheduling.replay.world import ReplayWorld
from federation.scheduling.snapshot import Snapshot

NOT_RECORDED = "the answers of its plugins were too large to be recorded"
NO_ATTEMPT = "it is not decided now: its type or its policy is missing in the records"


@dataclass(frozen=True, slots=True)
class Redecision:
    """A recorded decision and the same one made again; `again` is None if that was not possible: see `problem`."""

    entry: Decided
    projected: Object
    again: Result | None
    problem: str = ""

    @property
    def is_equal(self) -> bool:
        return self.again == self.entry.result


@dataclass(slots=True)
class Verdict:
    """The outcome for all decisions that were made again."""

    equal: int = 0
    different: list[Redecision] = field(default_factory=list)
    impossible: Counter[str] = field(default_factory=Counter)
    """Decisions that could not be made again, by the reason."""
    by_outcome: Counter[str] = field(default_factory=Counter)
    with_plugins: int = 0
    """Decisions with recorded answers of remote plugins."""

    def add(self, redecision: Redecision) -> None:
        """Count a decision."""
        self.by_outcome[redecision.entry.result.outcome] += 1
        self.with_plugins += bool(redecision.entry.answers)
        if redecision.again is None and redecision.problem == NOT_RECORDED:
            self.impossible[redecision.problem] += 1
        elif redecision.is_equal:
            self.equal += 1
        else:
            self.different.append(redecision)

    def merge(self, other: "Verdict") -> None:
        """Add the decisions of another verdict."""
        self.equal += other.equal
        self.different += other.different
        self.impossible += other.impossible
        self.by_outcome += other.by_outcome
        self.with_plugins += other.with_plugins

    @property
    def decisions(self) -> int:
        """The number of decisions."""
        return self.equal + len(self.different) + sum(self.impossible.values())


def redecide(
    entries: Iterable[Entry], installed: PluginRegistry, chain: Chain, since_us: int, until_us: int
) -> Iterator[Redecision]:
    """Yield every recorded decision of a period, made again; entries before it are read only."""
    world: ReplayWorld | None = None
    objects: dict[Key, tuple[Object, Placements]] = {}
    for entry in entries:
        if isinstance(entry, Header):
            if world is not None:
                world.clusters.release()
            world, objects = ReplayWorld(entry, installed, chain), {}
            continue
        if world is None:
            raise ConfigurationError("the records do not begin with a segment")
        match entry:
            case WorldChange():
                world.apply(entry)
            case AssumedChange():
                world.assume(entry)
            case Decided():
                before, placed = objects.get(entry.key, (None, {}))
                projected = restored(before, entry.whole, entry.patch)
                current = placed if entry.current is None else entry.current
                from_difference(entry, current, world.places)
                objects[entry.key] = projected, placed_by(entry.result, current)
                if since_us <= entry.at_us <= until_us:
                    yield _redecide(entry, projected, current, world)
    if world is not None:
        world.clusters.release()


def _redecide(entry: Decided, projected: Object, current: Placements, world: ReplayWorld) -> Redecision:
    again = decide_again(entry, projected, current, world)
    if isinstance(again, str):
        return Redecision(entry, projected, None, again)
    return Redecision(entry, projected, again[0])


def decide_again(
    entry: Decided, projected: Object, current: Placements, world: ReplayWorld
) -> tuple[Result, Due] | str:
    """Return the outcome of a recorded decision with a present placement in a world, or why there is none."""
    if entry.answers is None:
        return NOT_RECORDED
    type_ = world.type_of(projected["template"])
    if type_ is None:
        return NO_ATTEMPT
    federated = to_federated(projected, current, type_, world.places.texts)
    attempt = start_attempt(federated, type_, world.policies)
    if attempt is None:
        return NO_ATTEMPT
    if type_.paths.replicas_spec and "patches" not in projected:
        attempt.know(dict(current))
    due = assess(
        attempt,
        world,
        world.chain,
        world.scoped.of(federated),
        Occasion(
            from_us(entry.at_us),
            is_unschedulable=entry.is_unschedulable,
            can_place_more=entry.can_place_more,
            is_plugin_back=entry.is_plugin_back,
            homes=frozenset(entry.homes),
            completes=entry.completes,
            assumed=world.assumed,
            recorded=_surroundings_of(entry),
        ),
    )
    if not isinstance(due, Due):
        return f"it would not be decided: {type(due).__name__}"
    return result_of(_answered(_decide(attempt, due, world, entry), entry.answers)), due


def _decide(attempt: SchedulingAttempt, due: Due, world: ReplayWorld, entry: Decided) -> Exchange[Decision]:
    """Decide as the schedule controller does."""
    run = world.engine.run(due.unit, world.scoped.of(attempt.federated), due.profile, now=from_us(entry.at_us))
    return completed((yield from run), attempt, due)


def _answered(run: Exchange[Decision], answers: Sequence[Sequence[Answer]]) -> Decision:
    """Return the result of an exchange with the recorded answers; questions beyond them have no answer."""
    left = iter(answers)
    try:
        requests = next(run)
        while True:
            recorded = list(next(left, ()))
            recorded += [Answer(0, error="no answer was recorded")] * (len(requests) - len(recorded))
            requests = run.send([PluginResponse(each.status, each.body.encode(), each.error) for each in recorded])
    except StopIteration as stop:
        decision: Decision = stop.value
        return decision


def _surroundings_of(entry: Decided) -> Surroundings:
    """Return what other workloads meant for a decision."""
    use = entry.quota

    def quota(unit: SchedulingUnit, snapshot: Snapshot) -> Any:
        return None if use is None else _headroom(use, unit, snapshot.by_name)

    return Surroundings(tuple(entry.away), entry.relations, quota)


def _headroom(use: QuotaUse, unit: SchedulingUnit, clusters: Mapping[str, Cluster]) -> Headroom:
    present = use.present
    if present is None:
        counts = replica_counts(unit.current, unit.desired_replicas)
        uses = {name: Use(count, dict(unit.request), unit.pods.per_replica) for name, count in counts.items()}
        present = amounts_of(uses, use.others, clusters)
    scopes = {name: scope_of(name, hard) for name, hard in use.hard}
    return Headroom(scopes, use.others, present, unit.request, clusters, unit.pods.per_replica, use.requests)
