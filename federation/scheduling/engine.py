"""The scheduling algorithm: a decision from snapshot, unit and profile (docs/reference/scheduling.md).

A scheduling cycle filters, scores, selects and divides; it is synchronous, pure and deterministic. `decide` returns the
decision; `run` is the generator form for profiles with remote plugins: it yields requests and is sent the responses.

Unlike in KubeAdmiral, no workload is lost: without a feasible cluster, with a failing plugin or without any placed
replica, the decision is unsuccessful instead of an empty placement, and the caller keeps the last placement; a unit
that is scaled to 0 stays in its clusters with 0 replicas.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from federation.apimachinery.errors import PluginError
from federation.scheduling.availability import availability
from federation.scheduling.framework.admittedclusters import within_admitted, within_project
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import (
    FilterResult,
    IgnoredPlugin,
    PluginFailed,
    SchedulingCycle,
    ScoreResult,
    SelectResult,
    UnschedulableError,
)
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.devicerooms import has_devices, with_devices, within_devices
from federation.scheduling.framework.division import current_replicas
from federation.scheduling.framework.expectedload import with_assumed
from federation.scheduling.framework.gangs import within_room
from federation.scheduling.framework.orderedgroups import Tier, in_order, within_groups
from federation.scheduling.framework.policygroups import GROUPS
from federation.scheduling.framework.profile import Profile
from federation.scheduling.framework.quotaheadroom import QUOTA
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.relations import RELATIONS
from federation.scheduling.framework.relationsteps import with_relation_scores, within_relations
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.schedulermetrics import SchedulerMetrics
from federation.scheduling.framework.scoring import PREFERENCES, with_preference
from federation.scheduling.framework.types import (
    Cluster,
    ClusterChange,
    Code,
    Division,
    Exchange,
    SchedulingMode,
    SchedulingUnit,
    Status,
)
from federation.scheduling.groupdecision import AllClusters, Choice, TierChoice
from federation.scheduling.podgroups import JOINS
from federation.scheduling.snapshot import Snapshot

Placements = Mapping[str, int | None]
"""Cluster → replicas; None where the object keeps the replicas of its template."""

_FRAMEWORKS_MAX = 256


class Outcome(StrEnum):
    """The outcome of a decision. Only the first two are successful."""

    SCHEDULED = "Scheduled"
    STICKY = "Sticky"
    NO_FEASIBLE_CLUSTER = "NoFeasibleCluster"
    NO_REPLICAS_PLACED = "NoReplicasPlaced"
    CANNOT_DIVIDE = "CannotDivide"
    QUOTA_EXCEEDED = "QuotaExceeded"
    PLUGIN_FAILED = "PluginFailed"


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a scheduling cycle, with its steps. `placements` is empty unless `is_success`."""

    outcome: Outcome
    reason: str
    unit: SchedulingUnit
    snapshot: Snapshot
    profile: str = ""
    placements: Placements = field(default_factory=dict)
    filtered: FilterResult | None = None
    scored: ScoreResult | None = None
    selections: Sequence[SelectResult] = ()
    selected: Sequence[Cluster] = ()
    """The clusters that replicas were divided over; empty without a division."""
    division: Division | None = None
    failure: Status | None = None
    unplaced: int = 0
    exceeded: str = ""
    """The quota that leaves replicas or copies unplaced."""
    ignored: Sequence[IgnoredPlugin] = ()
    remarks: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Remarks by plugin and cluster."""

    @property
    def is_success(self) -> bool:
        return self.outcome in (Outcome.SCHEDULED, Outcome.STICKY)

    @property
    def shortage(self) -> str:
        """The number of unplaced replicas and the reason, for people; "" for none."""
        return _shortage(self.unplaced, self.unit.desired_replicas, self.division)

    @property
    def waiting(self) -> Mapping[str, int]:
        """Replicas per cluster that are placed beyond its capacity, because no cluster has any, and stay pending."""
        return {} if self.division is None else self.division.explanation.get("waiting") or {}

    @property
    def quotas(self) -> Mapping[str, Mapping[str, int]]:
        """Replicas by subset of a WorkloadSpread and cluster; {} without one."""
        return {} if self.division is None else (self.division.explanation.get("subsets") or {}).get("quotas") or {}


class Engine:
    """Decides with the plugins of `registry`. One engine serves all profiles; it caches their frameworks."""

    def __init__(
        self,
        registry: PluginRegistry,
        *,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self._registry = registry
        self._instrument = SchedulerMetrics(monotonic)
        self._frameworks: dict[tuple[int, str], tuple[Profile, Framework]] = {}

    @property
    def registry(self) -> PluginRegistry:
        """The plugins in use."""
        return self._registry

    def use(self, registry: PluginRegistry) -> None:
        """Replace the plugins; a decision in progress keeps the earlier ones."""
        self._registry = registry
        self._frameworks.clear()

    def framework(self, profile: Profile, project: str = "") -> Framework:
        """Return the profile's framework, created once; PluginError when the profile cannot work.

        Each project has its own, because a framework keeps results about the clusters of one snapshot after the other.
        """
        known = self._frameworks.get((id(profile), project))
        if known is not None and known[0] is profile:
            return known[1]
        framework = Framework(profile, self._registry, self._instrument)
        if len(self._frameworks) >= _FRAMEWORKS_MAX:
            del self._frameworks[next(iter(self._frameworks))]
        self._frameworks[id(profile), project] = (profile, framework)
        return framework

    def decide(self, unit: SchedulingUnit, snapshot: Snapshot, profile: Profile, *, now: datetime) -> Decision:
        """Return the decision; PluginError when the profile has a remote plugin."""
        run = self.run(unit, snapshot, profile, now=now)
        try:
            next(run)
        except StopIteration as stop:
            decision: Decision = stop.value
            return decision
        run.close()
        raise PluginError(f"profile {profile.name!r} has remote plugins: drive Engine.run instead of decide")

    def run(self, unit: SchedulingUnit, snapshot: Snapshot, profile: Profile, *, now: datetime) -> Exchange[Decision]:
        """Yield the requests of remote plugins, receive the responses, return the decision."""
        started, given = self._instrument.now(), (unit, snapshot)
        unit, clusters = with_devices(unit, snapshot.group, self._registry.selects)
        if clusters is not snapshot.group:
            snapshot = Snapshot(snapshot.generation, clusters, snapshot.lasting)
        cycle = SchedulingCycle(unit, with_assumed(unit, snapshot.group), CycleState(now))
        results = _CycleResults(cycle, snapshot, profile.name)
        try:
            decision = yield from self._steps(results, profile)
        except PluginFailed as failed:
            decision = results.failed(failed.status)
        except Exception as error:
            # Plugins may be third-party code: any exception of theirs becomes their failure, here and nowhere else.
            if not cycle.plugin:
                raise
            status = Status(Code.ERROR, (f"{type(error).__name__}: {error}",), cycle.plugin)
            decision = results.failed(status)
        if cycle.clusters is not snapshot.group:
            cycle.clusters.release()  # those of this decision only
        self._instrument.decision(decision.outcome, started)
        return decision if given == (unit, snapshot) else replace(decision, unit=given[0], snapshot=given[1])

    def _steps(self, results: "_CycleResults", profile: Profile) -> Exchange[Decision]:
        cycle, unit = results.cycle, results.cycle.unit
        if unit.sticky and unit.current:
            return _keep_sticky(results)
        if (joins := JOINS.of(unit)) is not None:
            return _join(results, dict.fromkeys(sorted(joins)))
        try:
            framework = self.framework(profile, results.snapshot.project)
        except PluginError as error:
            return results.end(Outcome.PLUGIN_FAILED, f"profile {profile.name}: {error}")
        filtered = yield from framework.run_filters(cycle)
        if RELATIONS.of(unit):
            filtered = within_relations(unit, filtered, cycle.state)
        filtered = within_project(results.snapshot.left, within_admitted(unit, filtered))
        waits = ""
        if unit.pods.is_gang:
            filtered, waits = within_room(unit, filtered, results.snapshot.by_name, cycle.state)
        elif has_devices(unit) and not unit.pods.replica_parts:  # those of whole replicas count in their capacity
            filtered, waits = within_devices(unit, filtered, cycle.state)
        results.filtered = filtered
        if not filtered.feasible:
            reason = availability(results.snapshot, filtered)
            return results.end(Outcome.NO_FEASIBLE_CLUSTER, f"{waits}; {reason}" if waits else reason)
        tiers: list[Tier] = []
        if GROUPS.of(unit):
            results.filtered, tiers = within_groups(unit, filtered)
            if not tiers:
                return results.end(Outcome.NO_FEASIBLE_CLUSTER, availability(results.snapshot, results.filtered))
        try:
            results.scored = yield from framework.run_scores(cycle, results.filtered)
        except UnschedulableError as refusal:
            return results.end(Outcome.NO_FEASIBLE_CLUSTER, f"{refusal.status.plugin}: {refusal}")
        if RELATIONS.of(unit):
            results.scored = with_relation_scores(unit, results.scored)
        for each in PREFERENCES.of(unit):
            results.scored = with_preference(results.scored, each.name, each.score)
        if tiers:
            return (yield from self._in_tiers(results, framework, tiers))
        results.choice = AllClusters(framework, results.scored)
        return (yield from self._place(results))

    def _in_tiers(self, results: "_CycleResults", framework: Framework, tiers: Sequence[Tier]) -> Exchange[Decision]:
        """Return the decision in the first tier that takes the whole unit.

        If none does, the unit stays in its tier; one that runs in none gets the tier that takes most of it.
        """
        assert results.filtered is not None
        assert results.scored is not None
        ordered, running = in_order(results.cycle.unit, tiers, results.filtered.feasible)
        decisions = []
        for tier in ordered:
            results.restart(TierChoice(framework, results.scored, tier, results.actual))
            decision = yield from self._place(results)
            if _is_whole(decision):
                return decision
            decisions.append((tier is running and decision.is_success, _placed(decision), decision))
        return max(decisions, key=lambda each: each[:2])[2]

    def _place(self, results: "_CycleResults") -> Exchange[Decision]:
        """Select, and divide what is divided."""
        cycle, unit, filtered = results.cycle, results.cycle.unit, results.filtered
        try:
            clusters: Sequence[Cluster] = yield from results.choice.select(cycle)
        except UnschedulableError as refusal:
            return results.end(Outcome.NO_FEASIBLE_CLUSTER, f"{refusal.status.plugin}: {refusal}")
        if not clusters:
            return results.end(Outcome.NO_FEASIBLE_CLUSTER, "no cluster was selected of the available ones")
        if unit.mode is SchedulingMode.DUPLICATE:
            results.exceeded = _excess(unit, dict.fromkeys([cluster.name for cluster in clusters]))
            if results.exceeded:
                return results.end(Outcome.QUOTA_EXCEEDED, f"its copies have no place within {results.exceeded}")
            reason = _with_groups(availability(results.snapshot, filtered), results.choice)
            return results.end(Outcome.SCHEDULED, reason, {cluster.name: None for cluster in clusters})
        return (yield from self._divide(results, results.actual(ClusterGroup.of(clusters))))

    def _divide(self, results: "_CycleResults", clusters: Sequence[Cluster]) -> Exchange[Decision]:
        unit, wanted = results.cycle.unit, results.cycle.unit.desired_replicas
        if wanted is None:
            return results.end(Outcome.NO_REPLICAS_PLACED, "the object does not say how many replicas it wants")
        if wanted <= 0:
            held = [cluster.name for cluster in clusters if cluster.name in unit.current]
            zeros = dict.fromkeys(held or [cluster.name for cluster in clusters], 0)
            return results.end(Outcome.SCHEDULED, "scaled to 0: it stays in its clusters", zeros)
        results.selected = clusters
        try:
            division = yield from results.choice.divide(results.cycle, clusters)
            if exceeded := _excess(unit, division.replicas):
                results.exceeded = exceeded
                division = yield from _divide_within_quota(results.cycle, results.choice, clusters, exceeded)
            results.division = division
        except UnschedulableError as refusal:
            return results.end(Outcome.NO_REPLICAS_PLACED, f"{refusal.status.plugin}: {refusal}")
        placements = {name: replicas for name, replicas in division.replicas.items() if replicas > 0}
        if not placements:
            limits = division.because or "weights and limits"
            outcome = Outcome.QUOTA_EXCEEDED if results.exceeded else Outcome.NO_REPLICAS_PLACED
            return results.end(outcome, f"{limits} leave no room for any of {wanted} replicas")
        results.unplaced = max(0, wanted - sum(placements.values()))
        reason = _with_groups(availability(results.snapshot, results.filtered), results.choice)
        if results.unplaced:
            reason += f"; {_shortage(results.unplaced, wanted, division)}"
        if waiting := sum((division.explanation.get("waiting") or {}).values()):
            reason += f"; {waiting} of {wanted} replicas fit on no node and wait in members"
        return results.end(Outcome.SCHEDULED, reason, placements)


class _CycleResults:
    """The results of the extension points that have run."""

    __slots__ = (
        "choice",
        "cycle",
        "division",
        "exceeded",
        "filtered",
        "profile",
        "scored",
        "selected",
        "snapshot",
        "unplaced",
    )

    def __init__(self, cycle: SchedulingCycle, snapshot: Snapshot, profile: str) -> None:
        self.cycle = cycle
        self.snapshot = snapshot
        self.profile = profile
        self.filtered: FilterResult | None = None
        self.scored: ScoreResult | None = None
        self.division: Division | None = None
        self.unplaced = 0
        self.exceeded = ""
        self.selected: Sequence[Cluster] = ()
        self.choice: Choice

    def restart(self, choice: Choice) -> None:
        """Forget what was placed with an earlier choice."""
        self.choice, self.division, self.unplaced, self.exceeded, self.selected = choice, None, 0, "", ()

    def actual(self, clusters: ClusterGroup) -> ClusterGroup:
        """Return the clusters as their members report them, without what recent decisions assume."""
        if self.cycle.clusters is self.snapshot.group:
            return clusters
        return ClusterGroup.of([self.snapshot.by_name[name] for name in clusters.names])

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
            exceeded=self.exceeded,
            ignored=self.cycle.ignored,
            remarks=self.cycle.state.remarks,
        )

    def failed(self, status: Status) -> Decision:
        who = f"{status.plugin} failed in {self.cycle.point}" if status.plugin else self.cycle.point
        return self.end(Outcome.PLUGIN_FAILED, f"{who}: {'; '.join(status.reasons)}", failure=status)


def _with_groups(reason: str, choice: Choice) -> str:
    groups = choice.describe()
    return f"{reason}; {groups}" if groups else reason


def _is_whole(decision: Decision) -> bool:
    """Return whether no other tier could place more; a quota holds in all of them."""
    if decision.outcome is Outcome.QUOTA_EXCEEDED or decision.exceeded:
        return True
    return decision.is_success and not decision.unplaced and not decision.waiting


def _placed(decision: Decision) -> int:
    """Return how many replicas of a decision have room."""
    return sum(count or 0 for count in decision.placements.values()) - sum(decision.waiting.values())


def _excess(unit: SchedulingUnit, placements: Placements) -> str:
    """Return the quota that a placement exceeds, "" for none."""
    quota = QUOTA.of(unit)
    if quota is None:
        return ""
    each = 1 if unit.desired_replicas is None else unit.desired_replicas
    return quota.excess({name: each if count is None else count for name, count in placements.items()})


def _divide_within_quota(
    cycle: SchedulingCycle, choice: Choice, clusters: Sequence[Cluster], exceeded: str
) -> Exchange[Division]:
    """Return the division of the largest total that the quota allows, found by bisection.

    Running replicas are within the quota in any case. A plugin divides each total, so that its rules hold for it.
    """
    unit, best = cycle.unit, Division({})
    wanted = unit.desired_replicas or 0
    running = sum(current_replicas(unit).values())
    low, high = min(wanted, running), wanted
    try:
        if low:
            cycle.unit = replace(unit, desired_replicas=low)
            best = yield from choice.divide(cycle, clusters)
        while high - low > 1:
            middle = (low + high) // 2
            cycle.unit = replace(unit, desired_replicas=middle)
            division = yield from choice.divide(cycle, clusters)
            if reason := _excess(unit, division.replicas):
                high, exceeded = middle, reason
            else:
                low, best = middle, division
    finally:
        cycle.unit = unit
    return replace(best, because=exceeded, requeue_on=ClusterChange.LABELS)


def _keep_sticky(results: _CycleResults) -> Decision:
    """Keep the placement; added replicas of a divided object stay unplaced (docs/reference/scheduling.md)."""
    unit, reason = results.cycle.unit, "sticky: it stays where it was scheduled first"
    wanted, counts = unit.desired_replicas, unit.current.values()
    if unit.mode is SchedulingMode.DIVIDE and wanted is not None and None not in counts:
        results.unplaced = max(0, wanted - sum(count or 0 for count in counts))
    if results.unplaced:
        reason += f"; {_shortage(results.unplaced, wanted, None)}"
    return results.end(Outcome.STICKY, reason, unit.current)


def _join(results: _CycleResults, placements: Placements) -> Decision:
    """Place a pod where its leader is; the leader's decision and quota were about it, too, unless it came later."""
    results.exceeded = _excess(results.cycle.unit, placements)
    if results.exceeded:
        return results.end(Outcome.QUOTA_EXCEEDED, f"with it, its pod group is not within {results.exceeded}")
    return results.end(Outcome.SCHEDULED, "it goes with its pod group", placements)


def _shortage(unplaced: int, wanted: int | None, division: Division | None) -> str:
    limits = (division.because or "the limits") if division else "its first placement"
    return f"{unplaced} of {wanted} replicas have no place within {limits}" if unplaced else ""
