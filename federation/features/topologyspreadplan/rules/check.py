"""The checker: violations of the requirements by the live pods of a service. Pure.

`check` returns all present violations; `changes` compares two results, so that events report only what appeared or
cleared. V4, V6 and the empty zones of V5 are judged only when no pod is being created.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

from federation.apimachinery.amounts import first_of
from federation.features.topologyspreadplan.rules.feasibility import Severity, feasible_nodes
from federation.features.topologyspreadplan.rules.planner import Plan
from federation.features.topologyspreadplan.rules.search import SearchOutcome, SearchResult, Shard, State

ViolationKey = tuple[str, str]
"""Rule and domain."""
_NAMED_MAX = 5
"""Objects that one message names."""
_PENDING_MAX = 100
"""Pending pods of which the feasible nodes are computed."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a member. `is_schedulable` is False for unready, cordoned and tainted nodes."""

    cluster: str
    name: str
    zone: str
    is_schedulable: bool = True

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}" if self.cluster else self.name


@dataclass(frozen=True, slots=True)
class Pod:
    """An active pod of a shard. `node` is "" while it is pending; then `is_unschedulable` says if it was tried."""

    cluster: str
    name: str
    shard: int
    node: str = ""
    is_unschedulable: bool = False

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}" if self.cluster else self.name


@dataclass(frozen=True, slots=True)
class Distribution:
    """The nodes that have a zone, and the active pods of the service."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """One violation. `rule` is V1 to V10 as in the reference; `domain` is what it is about, "" for the service."""

    rule: str
    severity: str
    domain: str
    message: str
    count: int | None = None
    limit: int | None = None

    @property
    def key(self) -> ViolationKey:
        """The identity: a violation with another count is the same one."""
        return self.rule, self.domain


def check(
    plan: Plan,
    distribution: Distribution,
    *,
    outdated: Mapping[str, str] | None = None,
    searches: Sequence[SearchResult] = (),
) -> list[Violation]:
    """Return the violations, ordered by rule and domain.

    `outdated` has a message for each StatefulSet whose constraints or pods are not up to date. `searches` are the
    results of a search from each of `live_states`.
    """
    live = _Live(plan, distribution)
    found = [
        *live.shards_together(),
        *live.nodes_above_limit(),
        *live.zone_violations(),
        *live.pods_without_node(),
        *_deadlocks(searches),
        *_few_nodes(plan),
        *(Violation("V10", Severity.INFO, name, text) for name, text in (outdated or {}).items()),
    ]
    return sorted(found, key=lambda each: (int(each.rule[1:]), each.domain))


def changes(before: Iterable[ViolationKey], now: Sequence[Violation]) -> tuple[list[Violation], list[ViolationKey]]:
    """Return the violations that are new, and the keys of those that have cleared."""
    known, present = set(before), {violation.key for violation in now}
    return [violation for violation in now if violation.key not in known], sorted(known - present)


class _Live:
    """The distribution, counted by node and zone."""

    def __init__(self, plan: Plan, distribution: Distribution) -> None:
        self._plan = plan
        self._service = plan.service
        self._nodes = {(node.cluster, node.name): node for node in distribution.nodes}
        self._pods = distribution.pods
        self._placed = [(pod, self._nodes[pod.cluster, pod.node]) for pod in self._pods if self._is_placed(pod)]
        self._by_node = Counter(node for _, node in self._placed)
        counts = Counter(node.zone for _, node in self._placed)
        self._by_zone = {zone.name: counts[zone.name] for zone in self._service.zones}
        self._outside = {zone: count for zone, count in counts.items() if zone not in self._by_zone}
        self._clusters: dict[str, _Cluster] = {}
        is_waiting = any(not pod.node and not pod.is_unschedulable for pod in self._pods)
        self._is_settled = not is_waiting and len(self._pods) >= self._service.pods

    def _is_placed(self, pod: Pod) -> bool:
        return (pod.cluster, pod.node) in self._nodes

    def shards_together(self) -> Iterator[Violation]:
        is_zoned = len(self._service.zones) > 1
        held: dict[tuple[int, str], list[Pod]] = {}
        for pod, node in self._placed:
            held.setdefault((pod.shard, node.zone if is_zoned else str(node)), []).append(pod)
        for (_, domain), pods in held.items():
            if len(pods) > 1:
                text = f"{_named(pods)} of one shard are in {'zone' if is_zoned else 'node'} {domain}"
                name = f"{domain}: {pods[0].name.rpartition('-')[0]}"
                yield Violation("V1", Severity.CRITICAL, name, text, len(pods), 1)

    def nodes_above_limit(self) -> Iterator[Violation]:
        limit, pods = self._plan.limits.node, self._service.pods
        for node, count in self._by_node.items():
            if count > limit:
                text = f"node {node} has {count} of {pods} pods, at most {limit} are allowed"
                yield Violation("V2", Severity.WARNING, str(node), text, count, limit)

    def zone_violations(self) -> Iterator[Violation]:
        limit, service = self._plan.limits.zone, self._service
        if limit is not None and (len(service.zones) > 2 or service.zone_max is not None):
            for zone, count in self._by_zone.items():
                if count > limit:
                    text = f"zone {zone} has {count} of {service.pods} pods, at most {limit} are allowed"
                    yield Violation("V3", Severity.WARNING, zone, text, count, limit)
        for zone, count in self._outside.items():
            text = f"{count} pods are in zone {zone}, which is not allowed"
            yield Violation("V5", Severity.WARNING, zone, text, count, 0)
        if not self._is_settled or not service.pods:
            return
        for zone, count in self._by_zone.items():
            if not count:
                yield Violation("V5", Severity.WARNING, zone, f"no pod is in zone {zone}", 0, 1)
        yield from self._differences()

    def _differences(self) -> Iterator[Violation]:
        service, counts = self._service, self._by_zone
        if len(counts) < 2:
            return
        difference = max(counts.values()) - min(counts.values())
        listed = ", ".join(f"{zone} {count}" for zone, count in counts.items())
        if len(counts) == 2 and not service.is_weighted:
            if difference and service.pods % 2 == 0:
                text = f"the zones have different numbers of pods: {listed}"
                yield Violation("V4", Severity.WARNING, "", text, difference, 0)
            return
        limit = service.difference_max
        if limit is None:
            limit = None if service.is_weighted else self._plan.limits.zone
        if limit is not None and difference > limit:
            text = f"the numbers of pods of the zones differ by {difference}, at most {limit} is allowed: {listed}"
            yield Violation("V6", Severity.INFO, "", text, difference, limit)

    def pods_without_node(self) -> Iterator[Violation]:
        pending = [pod for pod in self._pods if not pod.node] if self._plan.zones else []
        for pod in sorted(pending, key=str)[:_PENDING_MAX]:
            local = self._local(pod.cluster)
            found = feasible_nodes(
                local.pods,
                local.zones,
                {other.node for other in self._pods if (other.cluster, other.shard) == (pod.cluster, pod.shard)},
                self._plan.skews,
                allowed=self._plan.zones_of(pod.shard),
                schedulable=local.schedulable,
            )
            if not found:
                text = f"pod {pod} is pending, and the constraints allow no schedulable node"
                yield Violation("V7", Severity.CRITICAL, str(pod), text)

    def _local(self, cluster: str) -> "_Cluster":
        if cluster not in self._clusters:
            nodes = [node for key, node in self._nodes.items() if key[0] == cluster]
            self._clusters[cluster] = _Cluster(
                {node.name: self._by_node[node] for node in nodes},
                {node.name: node.zone for node in nodes},
                {node.name for node in nodes if node.is_schedulable},
            )
        return self._clusters[cluster]


class _Cluster(NamedTuple):
    """The nodes of one cluster: pods and zone by name, and those that accept pods."""

    pods: Mapping[str, int]
    zones: Mapping[str, str]
    schedulable: AbstractSet[str]


def live_states(plan: Plan, distribution: Distribution) -> list[State]:
    """Return the state of each cluster in which shards miss pods, for `search_from`; [] for a refused plan."""
    service = plan.service
    if not plan.zones:
        return []
    is_pinned = len(service.clusters) > 1
    states = []
    for cluster in service.clusters if is_pinned else ("",):
        nodes = [node for node in distribution.nodes if not is_pinned or node.cluster == cluster]
        zones = [zone for zone in service.zones if not is_pinned or zone.cluster == cluster]
        states.append(_live_state(plan, nodes, distribution.pods, [zone.name for zone in zones]))
    return [state for state in states if state.shards]


def _live_state(plan: Plan, nodes: Sequence[Node], pods: Sequence[Pod], zones: Sequence[str]) -> State:
    replicas, is_zoned = plan.service.replicas, len(plan.service.zones) > 1
    nodes = [node for node in nodes if node.zone in zones]
    numbers = {node: zones.index(node.zone) if is_zoned else number for number, node in enumerate(nodes)}
    by_name = {(node.cluster, node.name): node for node in nodes}
    loads: Counter[Node] = Counter()
    used, placed = Counter[int](), Counter[int]()
    for pod in pods:
        if (node := by_name.get((pod.cluster, pod.node))) is not None:
            loads[node] += 1
            placed[pod.shard] += 1
            used[pod.shard] |= 1 << numbers[node]
    count = len(zones) if is_zoned else len(nodes)
    domains = [tuple(sorted(loads[node] for node in nodes if numbers[node] == number)) for number in range(count)]
    shards = []
    for shard, names in enumerate(plan.zones):
        own = [number for number, zone in enumerate(zones) if zone in names] if is_zoned else range(count)
        wanted = len(own) if len(plan.service.clusters) > 1 else replicas
        if (missing := wanted - placed[shard]) > 0:
            shards.append(Shard(missing, sum(1 << number for number in own), used[shard]))
    return State(tuple(domains), tuple(sorted(shards)))


def _deadlocks(searches: Sequence[SearchResult]) -> Iterator[Violation]:
    for result in searches:
        if result.verdict is not SearchOutcome.DEADLOCK:
            continue
        missing = sum(shard.missing for shard in result.deadlocks[0].shards)
        if result.states == 1:
            text = f"deadlock: the constraints allow no node for any of the {missing} missing pods"
        else:
            text = f"a deadlock is reachable, in which {missing} pods have no node"
        yield Violation("V8", Severity.CRITICAL, "", text)
        return


def _few_nodes(plan: Plan) -> Iterator[Violation]:
    for finding in plan.findings:
        if finding.reason == "FewNodes":
            needed = -(-plan.service.pods // plan.limits.node)
            yield Violation("V9", Severity.WARNING, "", finding.message, plan.service.nodes, needed)


def _named(items: Sequence[Any]) -> str:
    return first_of(items, _NAMED_MAX)
