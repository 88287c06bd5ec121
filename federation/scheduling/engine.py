"""The scheduling algorithm: snapshot + unit + profile → decision (spec §6.2, D6).

Filter, score, select, divide; synchronous, pure and deterministic. `decide` answers at once; `run` is the same as a
generator for profiles with remote plugins: it yields requests and is sent the responses by whoever does I/O.

Where this differs from KubeAdmiral it is so that no workload is lost (D8): a decision without a feasible cluster,
with a failing plugin or that places no replica at all is *not* an empty placement but an unsuccessful decision, and the
caller keeps what is; and a unit that is scaled to 0 stays in its clusters with 0 replicas.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from federation.base.errors import PluginError
from federation.scheduling.framework.cycle import (
    Cycle,
    Filtered,
    Ignored,
    PluginFailed,
    Scored,
    Selection,
    Unselectable,
)
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.instrument import Instrument
from federation.scheduling.framework.profile import Profile
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.types import (
    Cluster,
    Code,
    Division,
    Exchange,
    SchedulingMode,
    SchedulingUnit,
    Status,
)
from federation.scheduling.snapshot import Snapshot

Placements = Mapping[str, int | None]
"""Cluster → replicas; None where the object goes as it is."""

_FRAMEWORKS_MAX = 64
_REASONS_MAX = 10
"""Different reasons that one line for people names; the explanation has them all."""


class Outcome(StrEnum):
    """How a decision ended. Only the first two say where the unit belongs."""

    SCHEDULED = "Scheduled"
    STICKY = "Sticky"
    NO_FEASIBLE_CLUSTER = "NoFeasibleCluster"
    NO_REPLICAS_PLACED = "NoReplicasPlaced"
    PLUGIN_FAILED = "PluginFailed"


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer and its whole trail. `placements` is empty unless `is_success`; `reason` is one line for people."""

    outcome: Outcome
    reason: str
    unit: SchedulingUnit
    snapshot: Snapshot
    profile: str = ""
    placements: Placements = field(default_factory=dict)
    filtered: Filtered | None = None
    scored: Scored | None = None
    selections: Sequence[Selection] = ()
    selected: Sequence[Cluster] = ()
    """The clusters that replicas were divided over; empty when that was not needed."""
    division: Division | None = None
    failure: Status | None = None
    unplaced: int = 0
    ignored: Sequence[Ignored] = ()
    remarks: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """What plugins said about clusters, by plugin and cluster."""

    @property
    def is_success(self) -> bool:
        return self.outcome in (Outcome.SCHEDULED, Outcome.STICKY)

    @property
    def shortage(self) -> str:
        """How many replicas have no place, and why, for people; "" when all have one."""
        return _shortage(self.unplaced, self.unit.desired_replicas, self.division)

    @property
    def waiting(self) -> Mapping[str, int]:
        """How many replicas per cluster are placed beyond its room, because there is none anywhere, and wait there."""
        return {} if self.division is None else self.division.explanation.get("waiting") or {}


class Engine:
    """Decides with the plugins of `registry`. One engine serves all profiles; it keeps their frameworks."""

    def __init__(self, registry: PluginRegistry, *, monotonic: Callable[[], float] | None = None) -> None:
        self._registry = registry
        self._instrument = Instrument(monotonic)
        self._frameworks: dict[int, tuple[Profile, Framework]] = {}

    @property
    def registry(self) -> PluginRegistry:
        """The plugins that it decides with."""
        return self._registry

    def use(self, registry: PluginRegistry) -> None:
        """Decide with these plugins from now on; a decision that is under way ends with those it began with."""
        self._registry = registry
        self._frameworks.clear()

    def framework(self, profile: Profile) -> Framework:
        """Return the profile's plugins, made once; PluginError when the profile cannot work."""
        known = self._frameworks.get(id(profile))
        if known is not None and known[0] is profile:
            return known[1]
        framework = Framework(profile, self._registry, self._instrument)
        if len(self._frameworks) >= _FRAMEWORKS_MAX:
            del self._frameworks[next(iter(self._frameworks))]
        self._frameworks[id(profile)] = (profile, framework)
        return framework

    def decide(self, unit: SchedulingUnit, snapshot: Snapshot, profile: Profile, *, now: datetime) -> Decision:
        """Decide at once; PluginError when the profile has a plugin that wants to ask somebody."""
        run = self.run(unit, snapshot, profile, now=now)
        try:
            next(run)
        except StopIteration as stop:
            decision: Decision = stop.value
            return decision
        run.close()
        raise PluginError(f"profile {profile.name!r} has remote plugins: drive Engine.run instead of decide")

    def run(self, unit: SchedulingUnit, snapshot: Snapshot, profile: Profile, *, now: datetime) -> Exchange[Decision]:
        """Yield the requests of remote plugins, get their responses sent, return the decision."""
        started = self._instrument.now()
        cycle = Cycle(unit, snapshot.clusters, CycleState(now))
        trail = _Trail(cycle, snapshot, profile.name)
        try:
            decision = yield from self._steps(trail, profile)
        except PluginFailed as failed:
            decision = trail.failed(failed.status)
        except Exception as error:
            # A plugin may be a stranger's code: this is the one seam at which whatever it raises becomes its failure.
            if not cycle.plugin:
                raise
            status = Status(Code.ERROR, (f"{type(error).__name__}: {error}",), cycle.plugin)
            decision = trail.failed(status)
        self._instrument.decision(decision.outcome, started)
        return decision

    def _steps(self, trail: "_Trail", profile: Profile) -> Exchange[Decision]:
        cycle, unit = trail.cycle, trail.cycle.unit
        if unit.sticky and unit.current:
            return _stick(trail)
        try:
            framework = self.framework(profile)
        except PluginError as error:
            return trail.end(Outcome.PLUGIN_FAILED, f"profile {profile.name}: {error}")
        trail.filtered = filtered = yield from framework.run_filters(cycle)
        if not filtered.feasible:
            return trail.end(Outcome.NO_FEASIBLE_CLUSTER, availability(trail.snapshot, filtered))
        try:
            trail.scored = yield from framework.run_scores(cycle, filtered)
            clusters = yield from framework.run_select(cycle, trail.scored)
        except Unselectable as refusal:
            return trail.end(Outcome.NO_FEASIBLE_CLUSTER, f"{refusal.status.plugin}: {refusal}")
        if not clusters:
            return trail.end(Outcome.NO_FEASIBLE_CLUSTER, "no cluster was selected of the available ones")
        if unit.mode is SchedulingMode.DUPLICATE:
            return trail.end(
                Outcome.SCHEDULED, availability(trail.snapshot, filtered), {cluster.name: None for cluster in clusters}
            )
        return (yield from self._divide(trail, framework, clusters))

    def _divide(self, trail: "_Trail", framework: Framework, clusters: Sequence[Cluster]) -> Exchange[Decision]:
        unit, wanted = trail.cycle.unit, trail.cycle.unit.desired_replicas
        if wanted is None:
            return trail.end(Outcome.NO_REPLICAS_PLACED, "the object does not say how many replicas it wants")
        if wanted <= 0:
            held = [cluster.name for cluster in clusters if cluster.name in unit.current]
            zeros = dict.fromkeys(held or [cluster.name for cluster in clusters], 0)
            return trail.end(Outcome.SCHEDULED, "scaled to 0: it stays in its clusters", zeros)
        trail.selected = clusters
        try:
            trail.division = division = yield from framework.run_replicas(trail.cycle, clusters)
        except Unselectable as refusal:
            return trail.end(Outcome.NO_REPLICAS_PLACED, f"{refusal.status.plugin}: {refusal}")
        placements = {name: replicas for name, replicas in division.replicas.items() if replicas > 0}
        if not placements:
            limits = division.because or "weights and limits"
            return trail.end(Outcome.NO_REPLICAS_PLACED, f"{limits} leave no room for any of {wanted} replicas")
        trail.unplaced = max(0, wanted - sum(placements.values()))
        reason = availability(trail.snapshot, trail.filtered)
        if trail.unplaced:
            reason += f"; {_shortage(trail.unplaced, wanted, division)}"
        if waiting := sum((division.explanation.get("waiting") or {}).values()):
            reason += f"; {waiting} of {wanted} replicas fit on no node and wait in members"
        return trail.end(Outcome.SCHEDULED, reason, placements)


class _Trail:
    """What is known so far of the decision under way."""

    __slots__ = ("cycle", "division", "filtered", "profile", "scored", "selected", "snapshot", "unplaced")

    def __init__(self, cycle: Cycle, snapshot: Snapshot, profile: str) -> None:
        self.cycle = cycle
        self.snapshot = snapshot
        self.profile = profile
        self.filtered: Filtered | None = None
        self.scored: Scored | None = None
        self.division: Division | None = None
        self.unplaced = 0
        self.selected: Sequence[Cluster] = ()

    def end(
        self, outcome: Outcome, reason: str, placements: Placements | None = None, failure: Status | None = None
    ) -> Decision:
        for ignored in self.cycle.ignored:
            reason += f"; {ignored.plugin} was ignored in {ignored.point} because {'; '.join(ignored.reasons)}"
        return Decision(
            outcome=outcome,
            reason=reason,
            unit=self.cycle.unit,
            snapshot=self.snapshot,
            profile=self.profile,
            placements=placements or {},
            filtered=self.filtered,
            scored=self.scored,
            selections=self.cycle.selections,
            selected=self.selected,
            division=self.division,
            failure=failure,
            unplaced=self.unplaced,
            ignored=self.cycle.ignored,
            remarks=self.cycle.state.remarks,
        )

    def failed(self, status: Status) -> Decision:
        who = f"{status.plugin} failed in {self.cycle.point}" if status.plugin else self.cycle.point
        return self.end(Outcome.PLUGIN_FAILED, f"{who}: {'; '.join(status.reasons)}", failure=status)


def _stick(trail: _Trail) -> Decision:
    """Keep the placement; of a divided object that grew the rest has no place (spec §6.2)."""
    unit, reason = trail.cycle.unit, "sticky: it stays where it was scheduled first"
    wanted, counts = unit.desired_replicas, unit.current.values()
    if unit.mode is SchedulingMode.DIVIDE and wanted is not None and None not in counts:
        trail.unplaced = max(0, wanted - sum(count or 0 for count in counts))
    if trail.unplaced:
        reason += f"; {_shortage(trail.unplaced, wanted, None)}"
    return trail.end(Outcome.STICKY, reason, unit.current)


def _shortage(unplaced: int, wanted: int | None, division: Division | None) -> str:
    limits = (division.because or "the limits") if division else "its first placement"
    return f"{unplaced} of {wanted} replicas have no place within {limits}" if unplaced else ""


def availability(snapshot: Snapshot, filtered: Filtered | None) -> str:
    """Return "2/3 clusters are available: 1 cluster(s) were unready", reasons counted and in a fixed order."""
    counts: dict[str, int] = {}
    statuses = {id(status): status for status in filtered.rejected.values()} if filtered else {}
    for which, times in Counter(map(id, filtered.rejected.values()) if filtered else ()).items():
        for reason in statuses[which].reasons or (f"filtered by {statuses[which].plugin}",):
            counts[reason] = counts.get(reason, 0) + times
    available = len(filtered.feasible) if filtered else 0
    text = f"{available}/{len(snapshot.clusters)} clusters are available"
    reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
    if len(reasons) > _REASONS_MAX:
        reasons[_REASONS_MAX:] = [f"and {len(reasons) - _REASONS_MAX} other reasons"]
    return f"{text}: {', '.join(reasons)}" if reasons else text
