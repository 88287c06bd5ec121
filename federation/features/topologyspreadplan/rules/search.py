"""Exhaustive search for scheduling deadlocks of a service under its hard constraints. Pure.

A state is the number of pods on every node and, for every shard with missing pods, the domains that its pods use. A
domain is a zone, or a node if there is only one zone. Any shard may place its next pod at any time, on any node that
the constraints allow. A state is a deadlock if shards miss pods and no node is feasible for any of them.

States that differ only in the order of nodes within a zone, of equal shards or of domains are one. The search stops at
a limit of states and reports that. kube-scheduler may count fewer nodes if pods have further node selectors.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from federation.features.topologyspreadplan.rules.counting import Maxima
from federation.features.topologyspreadplan.rules.shardedservice import Skews, Zone

Domain = tuple[int, ...]
"""The number of pods on each node, ascending."""


class Shard(NamedTuple):
    """A shard with missing pods. The masks have bit i for domain i: domains that it may use, and that its pods use."""

    missing: int
    allowed: int
    used: int


class State(NamedTuple):
    """The pods per node by domain, and the shards with missing pods, sorted."""

    domains: tuple[Domain, ...]
    shards: tuple[Shard, ...]


class SearchOutcome(StrEnum):
    """The result of a search."""

    FREE = "DeadlockFree"
    DEADLOCK = "DeadlockPossible"
    TOO_LARGE = "TooLarge"
    """The search reached its limit of states before it found a deadlock."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search. `maxima` are those of the reached states; if too large, others may exceed them.

    `is_completable` says whether some order of placements places all pods, as far as the search came.
    """

    verdict: SearchOutcome
    states: int
    maxima: Maxima
    is_completable: bool
    is_complete: bool
    """Whether every reachable state was examined."""
    deadlocks: tuple[State, ...] = ()


class DeadlockSearch:
    """One search. Call `advance` until it returns True, then read `result`.

    `enough` is for a start from which counting excludes a deadlock: the search ends once it has reached these maxima.
    """

    def __init__(self, start: State, skews: Skews, *, states_max: int, enough: Maxima | None = None) -> None:
        self._skews = skews
        self._states_max = states_max
        self._enough = enough
        first = canonical(start)
        self._seen = {first}
        self._waiting = [first]
        self._deadlocks: list[State] = []
        self._is_completable = enough is not None
        loads = (max(domain, default=0) for domain in start.domains)
        self._maxima = Maxima(max(loads, default=0), max(map(sum, start.domains), default=0))

    def advance(self, states: int) -> bool:
        """Examine up to this number of states; return True when the search has ended."""
        for _ in range(states):
            if self._has_ended():
                return True
            self._examine(self._waiting.pop())
        return self._has_ended()

    def _has_ended(self) -> bool:
        return not self._waiting or self._maxima == self._enough or len(self._seen) > self._states_max

    def _examine(self, state: State) -> None:
        if not state.shards:
            self._is_completable = True
            return
        is_stuck = True
        for following, on_node, in_domain in _moves(state, self._skews):
            is_stuck = False
            if on_node > self._maxima.node or in_domain > self._maxima.domain:
                self._maxima = Maxima(max(self._maxima.node, on_node), max(self._maxima.domain, in_domain))
            reached = canonical(following)
            if reached not in self._seen:
                self._seen.add(reached)
                self._waiting.append(reached)
        if is_stuck:
            self._deadlocks.append(state)

    @property
    def result(self) -> SearchResult:
        """The result so far, final after `advance` returned True."""
        is_free = not self._waiting or self._enough is not None
        verdict = (
            SearchOutcome.DEADLOCK if self._deadlocks else SearchOutcome.FREE if is_free else SearchOutcome.TOO_LARGE
        )
        is_complete, found = not self._waiting, tuple(self._deadlocks)
        return SearchResult(verdict, len(self._seen), self._maxima, self._is_completable, is_complete, found)


def start_by_node(nodes: int, shards: int, replicas: int) -> State:
    """Return the state without pods of a service in one zone: the domains are its nodes."""
    return State(((0,),) * nodes, (Shard(replicas, (1 << nodes) - 1, 0),) * shards)


def start_by_zone(zones: Sequence[Zone], shards: Iterable[tuple[int, Collection[str]]]) -> State:
    """Return the state without pods of shards, given by number of pods and zones that they may use."""
    bits = {zone.name: 1 << number for number, zone in enumerate(zones)}
    missing = [Shard(count, sum(bits[name] for name in names), 0) for count, names in shards if count]
    return State(tuple((0,) * zone.nodes for zone in zones), tuple(sorted(missing)))


def _moves(state: State, skews: Skews) -> Iterator[tuple[State, int, int]]:
    """Yield each next state, with the number of pods on the node and in the domain of the new pod."""
    domains, shards = state
    totals = [sum(domain) for domain in domains]
    floors: dict[int, tuple[int, int]] = {}
    for shard in dict.fromkeys(shards):
        if shard.allowed not in floors:
            floors[shard.allowed] = _floors(domains, totals, shard.allowed)
        floor, domain_floor = floors[shard.allowed]
        position = shards.index(shard)
        others = shards[:position] + shards[position + 1 :]
        for number, domain in enumerate(domains):
            if not (shard.allowed & ~shard.used) >> number & 1:
                continue
            if skews.zone is not None and totals[number] + 1 - domain_floor > skews.zone:
                continue
            for index, load in enumerate(domain):
                if load + 1 - floor > skews.node:
                    break  # the nodes are in ascending order
                if index + 1 < len(domain) and domain[index + 1] == load:
                    continue  # of nodes with equal loads, the last keeps the order
                grown = (*domain[:index], load + 1, *domain[index + 1 :])
                moved = (*domains[:number], grown, *domains[number + 1 :])
                yield State(moved, others + _placed(shard, number)), load + 1, totals[number] + 1


def _floors(domains: Sequence[Domain], totals: Sequence[int], allowed: int) -> tuple[int, int]:
    """Return the fewest pods on a node and in a domain, over the domains that a shard may use."""
    loads = (load for number, domain in enumerate(domains) if allowed >> number & 1 for load in domain)
    sums = (total for number, total in enumerate(totals) if allowed >> number & 1 and domains[number])
    return min(loads, default=0), min(sums, default=0)


def _placed(shard: Shard, number: int) -> tuple[Shard, ...]:
    if shard.missing == 1:
        return ()
    return (Shard(shard.missing - 1, shard.allowed, shard.used | 1 << number),)


def canonical(state: State) -> State:
    """Return one of the states that differ from this one only in the order of domains and shards.

    Equivalent states may get different results, which costs states and not correctness.
    """
    domains, shards = state
    numbers = range(len(domains))
    used, allowed = [0] * len(domains), [0] * len(domains)
    for shard in shards:
        mask, bound = shard.used, shard.allowed
        for number in numbers:
            used[number] += mask >> number & 1
            allowed[number] += bound >> number & 1
    keys = list(zip(domains, used, allowed, strict=True))
    ordered = sorted(shards)
    if all(keys[number] <= keys[number + 1] for number in range(len(keys) - 1)):
        return State(domains, tuple(ordered))
    order = sorted(numbers, key=keys.__getitem__)
    place = [0] * len(domains)
    for new, number in enumerate(order):
        place[number] = 1 << new
    every = (1 << len(domains)) - 1
    renamed = {0: 0, every: every}
    for mask in {mask for shard in ordered for mask in shard[1:]} - renamed.keys():
        renamed[mask] = sum(place[number] for number in numbers if mask >> number & 1)
    moved = sorted((shard[0], renamed[shard[1]], renamed[shard[2]]) for shard in ordered)
    return State(tuple([domains[number] for number in order]), tuple([Shard(*shard) for shard in moved]))
