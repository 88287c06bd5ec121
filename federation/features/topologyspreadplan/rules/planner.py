"""The plan of a service: limits, maxSkew, the verdict of the deadlock search, and how a deadlock is avoided. Pure.

`plan_service` is the entry. A plan may take a second of computation, so it is a generator: it yields after every slice
of work and returns the plan. `run` drains it where nothing else waits.

Constraints cannot span clusters. In several clusters, every shard is assigned to zones and pinned to them, and each
cluster is searched by itself.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from federation.features.topologyspreadplan.rules.assignment import Zones, assign_zones, is_surely_free
from federation.features.topologyspreadplan.rules.counting import (
    Maxima,
    cannot_deadlock,
    relaxations,
    worst_case_bounds,
)
from federation.features.topologyspreadplan.rules.feasibility import Finding, find_limits
from federation.features.topologyspreadplan.rules.search import (
    DeadlockSearch,
    SearchOutcome,
    SearchResult,
    State,
    start_by_node,
    start_by_zone,
)
from federation.features.topologyspreadplan.rules.shardedservice import Limits, Mode, Service, Skews, limits_of

T = TypeVar("T")
Slices = Generator[None, None, T]
"""Yields between slices of work and returns the result."""
_SLICE_COST = 1_000
"""About five milliseconds of work; a state costs its nodes, and its domains times its shards."""
_SEARCH_COST = 1_000_000
STATES_MAX = 20_000
_NODES_MAX, _SHARDS_MAX, _DOMAINS_MAX = 64, 64, 20
"""A larger start is not searched; counting still may exclude a deadlock."""


class Avoidance(StrEnum):
    """How the plan avoids a deadlock that is reachable under the computed constraints."""

    NONE = "None"
    PINNED = "Pinned"
    """Each StatefulSet may use only its assigned zones."""
    RELAXED = "Relaxed"
    """maxSkew is larger than the limits."""


class Outcome(StrEnum):
    """The plan's verdict about deadlocks under its constraints."""

    FREE = "DeadlockFree"
    DEADLOCK = "DeadlockPossible"
    TOO_LARGE = "TooLarge"
    REFUSED = "Refused"
    """There are no constraints: a finding says why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a service. `zones` are the zones of each shard, () if the plan is refused."""

    service: Service
    limits: Limits
    skews: Skews
    outcome: Outcome
    avoidance: Avoidance
    zones: tuple[Zones, ...]
    findings: tuple[Finding, ...] = ()
    search: SearchResult | None = None
    """The search with the computed maxSkew and unpinned shards, None if the shards must be pinned anyway."""
    relaxation: Skews | None = None
    """The smallest values of maxSkew without a deadlock, if the computed ones allow one."""
    assignment: tuple[Zones, ...] | None = None
    """The zones of each shard with which the computed maxSkew has no deadlock."""

    def zones_of(self, shard: int) -> Zones:
        """Return the zones that a shard may use; all for a StatefulSet beyond the declared number of shards."""
        return self.zones[shard] if shard < len(self.zones) else tuple(zone.name for zone in self.service.zones)


def run(slices: Slices[T]) -> T:
    """Do all the work at once and return the result."""
    while True:
        try:
            next(slices)
        except StopIteration as stop:
            value: T = stop.value
            return value


def plan_service(
    service: Service, *, held: Mapping[int, Sequence[str]] | None = None, states_max: int = STATES_MAX
) -> Slices[Plan]:
    """Plan a service. `held` has the zones of shards that already have pods, by number of the shard."""
    limits = limits_of(service)
    skews = limits_of(service, is_relaxed=False).skews
    findings = tuple(find_limits(service, limits))
    plan = Plan(service, limits, skews, Outcome.REFUSED, Avoidance.NONE, (), findings)
    if not service.shards or any(finding.is_refused for finding in findings):
        return plan
    every = tuple(zone.name for zone in service.zones if zone.nodes)
    plan = replace(plan, zones=(every,) * service.shards)
    if len(service.clusters) > 1 or service.is_weighted:
        return (yield from _plan_pinned(plan, held, states_max))
    result = yield from search_unpinned(service, skews, states_max)
    plan = replace(plan, outcome=Outcome(result.verdict), search=result)
    if result.verdict is SearchOutcome.FREE:
        return plan
    return (yield from _avoid(plan, held, states_max))


def _plan_pinned(plan: Plan, held: Mapping[int, Sequence[str]] | None, states_max: int) -> Slices[Plan]:
    """Plan a service that must be pinned whether or not a deadlock is reachable."""
    assigned = assign_zones(plan.service, plan.limits, held)
    if assigned is None:
        return replace(plan, outcome=Outcome.REFUSED, zones=())
    verdict = yield from judge_pins(plan.service, assigned, plan.skews, states_max)
    return replace(plan, outcome=Outcome(verdict), avoidance=Avoidance.PINNED, zones=assigned, assignment=assigned)


def _avoid(plan: Plan, held: Mapping[int, Sequence[str]] | None, states_max: int) -> Slices[Plan]:
    """Find the smallest relaxation and an assignment, and use the one that the mode prefers."""
    service = plan.service
    for skews in relaxations(service, plan.skews):
        result = yield from search_unpinned(service, skews, states_max)
        if result.verdict is SearchOutcome.FREE:
            plan = replace(plan, relaxation=skews)
            break
    assigned = assign_zones(service, plan.limits, held) if len(service.zones) > 1 else None
    if assigned is not None:
        verdict = yield from judge_pins(service, assigned, plan.skews, states_max)
        if verdict is SearchOutcome.FREE:
            plan = replace(plan, assignment=assigned)
    if plan.relaxation is not None and service.mode is Mode.RELAXED:
        return replace(plan, outcome=Outcome.FREE, avoidance=Avoidance.RELAXED, skews=plan.relaxation)
    if plan.assignment is not None:
        return replace(plan, outcome=Outcome.FREE, avoidance=Avoidance.PINNED, zones=plan.assignment)
    return plan


def judge_pins(service: Service, assigned: Sequence[Zones], skews: Skews, states_max: int) -> Slices[SearchOutcome]:
    """Return whether pinned shards can deadlock in any cluster."""
    if is_surely_free(service, assigned, skews):
        return SearchOutcome.FREE
    verdict = SearchOutcome.FREE
    for cluster in service.clusters:
        zones = [zone for zone in service.zones if zone.cluster == cluster]
        own = {zone.name for zone in zones}
        local = [own.intersection(names) for names in assigned]
        start = start_by_zone(zones, [(len(names), names) for names in local])
        result = yield from search_from(start, skews, states_max)
        if result.verdict is SearchOutcome.DEADLOCK:
            return result.verdict
        if result.verdict is SearchOutcome.TOO_LARGE:
            verdict = result.verdict
    return verdict


def search_unpinned(service: Service, skews: Skews, states_max: int = STATES_MAX) -> Slices[SearchResult]:
    """Search from the state without pods, with shards that may use all zones.

    If counting excludes a deadlock, the verdict is never TooLarge, and the maxima of an incomplete search are upper
    bounds.
    """
    if len(service.zones) == 1:
        start = start_by_node(service.nodes, service.shards, service.replicas)
    else:
        names = [zone.name for zone in service.zones]
        start = start_by_zone(service.zones, [(service.replicas, names)] * service.shards)
    if not cannot_deadlock(service, skews):
        return (yield from search_from(start, skews, states_max))
    bounds = worst_case_bounds(service, skews)
    result = yield from search_from(start, skews, states_max, enough=bounds)
    return result if result.is_complete else replace(result, maxima=bounds)


def search_from(
    start: State, skews: Skews, states_max: int = STATES_MAX, *, enough: Maxima | None = None
) -> Slices[SearchResult]:
    """Search from a state; `enough` as in DeadlockSearch."""
    nodes, domains, shards = sum(map(len, start.domains)), len(start.domains), len(start.shards)
    if nodes > _NODES_MAX or domains > _DOMAINS_MAX or shards > _SHARDS_MAX:
        verdict = SearchOutcome.TOO_LARGE if enough is None else SearchOutcome.FREE
        return SearchResult(verdict, 0, Maxima(0, 0), is_completable=enough is not None, is_complete=False)
    cost = nodes + domains * shards + 1
    search = DeadlockSearch(start, skews, states_max=min(states_max, _SEARCH_COST // cost), enough=enough)
    while not search.advance(max(1, _SLICE_COST // cost)):
        yield
    return search.result
