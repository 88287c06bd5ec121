"""A fleet of members for gangs that wait, without I/O and on a virtual clock: admission by admission, pod by pod.

Gangs arrive faster than the fleet can run them, and slower, in turns. Members die and come back, their gangs start
again. A member's scheduler places pods on the emptiest node with room, as kube-scheduler does, so that nodes fragment.
A gang that a policy starts where not all of its pods find a node is a partial start. `Policy` is what is compared: the
queue of this project, first come first served, and the rules of MultiKueue.
"""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from statistics import mean, quantiles
from typing import Protocol

from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.facts import Capacity, Job, Option, Queue, Reservation, Room
from federation.planning.accounts.usage import Limit
from federation.scheduling.framework.gangfit import find_shortfall
from federation.scheduling.framework.types import CPU, PODS, Cluster, NodeClass, PodSet, pod_shape

NODES, NODE_CORES = 6, 16
CORES = NODES * NODE_CORES
"""Cores of a member."""
_SIZES = (4, 8, 8, 16, 16, 24, 32, 48, CORES)
_RUN_S = 600.0
"""Mean time that a gang runs."""
_LOST_AFTER_S = 300.0
"""How long a member is gone before its gangs start elsewhere."""
_AWAY_S = 900.0
"""Mean time that a dead member is gone."""
_LOADS = (0.9, 1.25, 1.25, 0.6)
"""Demand as a part of what the fleet has, for equal numbers of gangs one after the other."""
_PODS_MAX = 110
_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Gang:
    """Equal pods that start together; `limit_s` is the time after which they are stopped, if there is one."""

    name: str
    arrives_s: float
    runs_s: float
    pods: int
    pod_cores: int
    limit_s: float | None

    @property
    def cores(self) -> int:
        """All cores."""
        return self.pods * self.pod_cores


@dataclass(slots=True)
class Member:
    """The free cores of each node, and the gangs that run with the nodes of their pods."""

    name: str
    nodes: list[int] = field(default_factory=lambda: [NODE_CORES] * NODES)
    running: dict[str, list[int]] = field(default_factory=dict)
    is_alive: bool = True
    report: Cluster | None = None
    """What it reports, until a gang starts or ends there."""

    def free(self) -> int:
        """Return the free cores."""
        return sum(self.nodes)

    def fits(self, gang: Gang) -> bool:
        """Return whether all pods find nodes; exact, since the pods of a gang are equal."""
        return self.is_alive and sum(free // gang.pod_cores for free in self.nodes) >= gang.pods

    def start(self, gang: Gang) -> bool:
        """Place pods on the emptiest nodes, one after the other; return whether all have a node."""
        self.report = None
        chosen = []
        for _ in range(gang.pods):
            at = max(range(NODES), key=self.nodes.__getitem__)
            if self.nodes[at] < gang.pod_cores:
                break
            self.nodes[at] -= gang.pod_cores
            chosen.append(at)
        self.running[gang.name] = chosen
        return len(chosen) == gang.pods

    def end(self, gang: Gang) -> None:
        """Free the nodes of a gang."""
        self.report = None
        for at in self.running.pop(gang.name, ()):
            self.nodes[at] += gang.pod_cores


Fleet = Mapping[str, Member]


class Policy(Protocol):
    """Decides who starts."""

    def start(self, waiting: Mapping[str, Gang], fleet: Fleet, now: float) -> Iterable[tuple[Gang, str]]:
        """Yield gangs with their members; each is started before the next one is asked for."""

    def ended(self, gang: Gang, *, is_lost: bool) -> None:
        """Learn that a gang has ended, or that it has lost its member and waits again."""

    def next_look(self) -> float:
        """Return when the policy wants to be asked again although nothing happened."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to all gangs. `used` is the part of living members' cores in use while more was asked for."""

    waits: list[float]
    largest: list[float]
    by_core: float
    """The mean wait of a core that was asked for."""
    used: float
    saturated_s: float
    partial: int
    lost: int
    restarts: int

    def line(self) -> str:
        """Return the figures for people."""
        high = quantiles(self.waits, n=20)[-1]
        return (
            f"{mean(self.waits):>8.0f} s {high:>7.0f} s {mean(self.largest):>7.0f} s {max(self.largest):>7.0f} s "
            f"{self.used:>7.1%} {self.partial:>8} {self.lost:>5}"
        )


def make_gangs(rng: Random, count: int, members: int) -> list[Gang]:
    """Return gangs in the order of their arrival; a third of them have a limit, up to twice as long as they run."""
    found, at = [], 0.0
    mean_cores = sum(_SIZES) / len(_SIZES)
    for number in range(count):
        load = _LOADS[number * len(_LOADS) // count]
        at += rng.expovariate(load * members * CORES / (_RUN_S * mean_cores))
        cores = rng.choice(_SIZES)
        each = 4 if cores <= 8 or rng.random() < 0.5 else 8
        runs_s = rng.expovariate(1 / _RUN_S)
        limit_s = runs_s * rng.uniform(1, 2) if rng.random() < 1 / 3 else None
        found.append(Gang(f"g-{number:05}", at, runs_s, cores // each, each, limit_s))
    return found


class _Run:
    def __init__(self, policy: Policy, gangs: list[Gang], members: int, deaths_every_s: float, rng: Random) -> None:
        self.policy, self.rng, self.every_s = policy, rng, deaths_every_s
        self.fleet = {f"member-{at:02}": Member(f"member-{at:02}") for at in range(members)}
        self.waiting: dict[str, Gang] = {}
        self.where: dict[str, str] = {}
        self.done: dict[str, float] = {}
        self.events: list[tuple[float, int, str, str, int]] = []
        self.gangs = {gang.name: gang for gang in gangs}
        self.starts: dict[str, int] = {}
        self.partial = self.restarts = 0
        self.used = self.had = self.saturated_s = 0.0
        self.asked = 0
        """The cores of the gangs that wait."""
        for gang in gangs:
            self._add(gang.arrives_s, "arrives", gang.name)
        self._last_s = gangs[-1].arrives_s
        if deaths_every_s:
            self._add(rng.expovariate(1 / deaths_every_s), "death", "")

    def _add(self, at_s: float, what: str, name: str, number: int = 0) -> None:
        heapq.heappush(self.events, (at_s, len(self.events), what, name, number))

    def run(self) -> Outcome:
        waits: dict[str, float] = {}
        now = 0.0
        while self.events or self.waiting:
            upcoming = min(self.events[0][0] if self.events else _NEVER, self.policy.next_look())
            if upcoming == _NEVER:
                break  # what waits now is lost
            self._measure(now, upcoming)
            now = upcoming
            while self.events and self.events[0][0] <= now:
                _, _, what, name, number = heapq.heappop(self.events)
                self._happen(now, what, name, number)
            for gang, member in self.policy.start(self.waiting, self.fleet, now):
                self._start(gang, self.fleet[member], now)
                waits.setdefault(gang.name, now - gang.arrives_s)
        lost = len(self.gangs) - len(self.done)
        return Outcome(
            list(waits.values()),
            [wait for name, wait in waits.items() if self.gangs[name].cores == CORES],
            sum(wait * self.gangs[name].cores for name, wait in waits.items())
            / sum(self.gangs[name].cores for name in waits),
            self.used / self.had if self.had else 0.0,
            self.saturated_s,
            self.partial,
            lost,
            self.restarts,
        )

    def _wait(self, gang: Gang) -> None:
        self.waiting[gang.name] = gang
        self.asked += gang.cores

    def _measure(self, now: float, until_s: float) -> None:
        alive = [each for each in self.fleet.values() if each.is_alive]
        if self.asked >= len(alive) * CORES:
            self.saturated_s += until_s - now
            self.had += (until_s - now) * len(alive) * CORES
            self.used += (until_s - now) * sum(CORES - each.free() for each in alive)

    def _start(self, gang: Gang, member: Member, now: float) -> None:
        assert member.is_alive
        del self.waiting[gang.name]
        self.asked -= gang.cores
        if not member.start(gang):
            self.partial += 1
        number = self.starts[gang.name] = self.starts.get(gang.name, 0) + 1
        self.where[gang.name] = member.name
        self._add(now + gang.runs_s, "ends", gang.name, number)

    def _happen(self, now: float, what: str, name: str, number: int) -> None:
        match what:
            case "arrives":
                self._wait(self.gangs[name])
            case "ends":
                if self.starts.get(name) == number and name in self.where:
                    gang = self.gangs[name]
                    member = self.fleet[self.where[name]]
                    if not member.is_alive:
                        return
                    del self.where[name]
                    assert name not in self.done, "it ended twice"
                    member.end(gang)
                    self.done[name] = now
                    self.policy.ended(gang, is_lost=False)
            case "death":
                if now < self._last_s:
                    self._add(now + self.rng.expovariate(1 / self.every_s), "death", "")
                alive = [each for each in self.fleet.values() if each.is_alive]
                if len(alive) > len(self.fleet) // 2:
                    victim = self.rng.choice(alive)
                    victim.is_alive = False
                    self._add(now + _LOST_AFTER_S, "lost", victim.name)
                    self._add(now + _LOST_AFTER_S + self.rng.expovariate(1 / _AWAY_S), "back", victim.name)
            case "lost":
                member = self.fleet[name]
                for each in sorted(member.running):
                    gang = self.gangs[each]
                    member.end(gang)
                    del self.where[each]
                    self._wait(gang)
                    self.restarts += 1
                    self.policy.ended(gang, is_lost=True)
            case "back":
                self.fleet[name].is_alive = True


def simulate(policy: Policy, seed: int, gangs: int, members: int = 20, deaths_every_s: float = 1_200.0) -> Outcome:
    """Run all gangs of a seed to their end."""
    rng = Random(seed)
    return _Run(policy, make_gangs(rng, gangs, members), members, deaths_every_s, rng).run()


_PAIR = ("any", CPU)


class ByQueue:
    """This project's admission, and its scheduler's check node by node."""

    def __init__(self, members: int = 20, *, packs: bool = True) -> None:
        names = frozenset(f"member-{at:02}" for at in range(members))
        self._queues = {"q": Queue("q", {_PAIR: Limit(members * CORES * 1_000)})}
        self._kept: Mapping[str, Reservation] = {}
        self._jobs: dict[str, Job] = {}
        self._fronts: set[str] = set()
        self._running: dict[str, Job] = {}
        self._refusals: dict[str, int] = {}
        self._names = names
        self._options: dict[tuple[int, int], tuple[Option, ...]] = {}
        self._packs = packs
        self._look_s = _NEVER

    def _job(self, gang: Gang) -> Job:
        job = self._jobs.get(gang.name)
        if job is None:
            job = self._jobs[gang.name] = Job(
                gang.name,
                "q",
                "t/q",
                self._option(gang),
                {CPU: gang.cores * 1_000},
                created_s=gang.arrives_s,
                limit_s=gang.limit_s,
                is_front=gang.name in self._fronts,
            )
        return job

    def _option(self, gang: Gang) -> tuple[Option, ...]:
        shape = (gang.cores, gang.pod_cores)
        if shape not in self._options:
            self._options[shape] = (Option({_PAIR: gang.cores * 1_000}, self._names),)
        return self._options[shape]

    def start(self, waiting: Mapping[str, Gang], fleet: Fleet, now: float) -> Iterable[tuple[Gang, str]]:
        """Yield what starts; rounds follow until one admits nothing."""
        while True:
            clusters = {each.name: to_cluster(each) for each in fleet.values() if each.is_alive}
            rooms = {name: Room({CPU: CORES * 1_000}, {CPU: each.available[CPU]}) for name, each in clusters.items()}
            jobs = [*self._running.values(), *map(self._job, waiting.values())]
            found = admit(self._queues, jobs, Capacity(rooms, self._kept), now)
            self._kept = found.reserved
            if not found.admitted:
                self._look_s = min((each.not_before_s for each in jobs if each.not_before_s > now), default=_NEVER)
                return
            for key, admitted in found.admitted.items():
                gang, job = waiting[key], self._job(waiting[key])
                pods = _pods(gang)
                able = [name for name in sorted(admitted.clusters) if find_shortfall(pods, clusters[name]) is None]
                if not able:
                    refusals = self._refusals[key] = self._refusals.get(key, 0) + 1
                    wait_s = min(5.0 * 2.0 ** min(refusals - 1, 10), 300.0)
                    self._jobs[key] = replace(job, not_before_s=now + wait_s)
                    continue
                by_room = max if not self._packs else min
                cluster = by_room(able, key=lambda name: clusters[name].available[CPU])
                self._refusals.pop(key, None)
                self._running[key] = replace(job, holds=admitted.holds, cluster=cluster, started_s=now, not_before_s=0)
                yield gang, cluster
                clusters[cluster] = to_cluster(fleet[cluster])

    def ended(self, gang: Gang, *, is_lost: bool) -> None:
        """Forget a gang, or put it in front."""
        self._running.pop(gang.name, None)
        self._jobs.pop(gang.name, None)
        if is_lost:
            self._fronts.add(gang.name)

    def next_look(self) -> float:
        """Return the end of the next backoff."""
        return self._look_s


def _pods(gang: Gang) -> tuple[PodSet, ...]:
    return (PodSet("pods", gang.pods, gang.pods, pod_shape(((CPU, gang.pod_cores * 1_000),))),)


def to_cluster(member: Member) -> Cluster:
    """Return a member as it reports itself."""
    if member.report is not None:
        return member.report
    free = sorted(member.nodes, reverse=True)
    pods = tuple([_PODS_MAX] * NODES)
    nodes = NodeClass(
        largest={CPU: NODE_CORES * 1_000, PODS: _PODS_MAX},
        nodes=tuple([1] * NODES),
        free={CPU: tuple(each * 1_000 for each in free), PODS: pods},
        size=NODES,
    )
    total = {CPU: CORES * 1_000, PODS: _PODS_MAX * NODES}
    member.report = Cluster(
        member.name,
        allocatable=total,
        available={CPU: member.free() * 1_000, PODS: _PODS_MAX * NODES},
        node_classes=(nodes,),
    )
    return member.report


class FirstCome:
    """Gangs start in the order of their arrival; nothing passes the first one that finds no room."""

    def start(self, waiting: Mapping[str, Gang], fleet: Fleet, now: float) -> Iterable[tuple[Gang, str]]:
        """Yield the first gangs."""
        for gang in sorted(waiting.values(), key=lambda each: each.arrives_s):
            member = min((each for each in fleet.values() if each.fits(gang)), key=Member.free, default=None)
            if member is None:
                return
            yield gang, member.name

    def ended(self, gang: Gang, *, is_lost: bool) -> None:
        """Nothing to know."""

    def next_look(self) -> float:
        """Never."""
        return _NEVER


class MultiKueue:
    """Kueue's manager with workers that run Kueue, dispatched to all workers, BestEffortFIFO on both levels.

    The manager reserves quota, the sum of its workers, for the oldest workloads that fit into what is left, and creates
    them in all workers. In each of them the oldest that fits starts. The first worker that has quota keeps it: here, a
    random one of those that have room. Quota of a dead worker stays in the manager's sum. Workers know their nodes, as
    with topology-aware scheduling, without which gangs would start in part. Nothing takes time.
    """

    def __init__(self, members: int, rng: Random) -> None:
        self._rng = rng
        self._quota = members * CORES
        self._dispatched: dict[str, Gang] = {}
        self._used = 0

    def start(self, waiting: Mapping[str, Gang], fleet: Fleet, now: float) -> Iterable[tuple[Gang, str]]:
        """Yield the workloads that a worker admits."""
        for gang in sorted(waiting.values(), key=lambda each: each.arrives_s):
            if gang.name not in self._dispatched and self._used + gang.cores <= self._quota:
                self._dispatched[gang.name] = gang
                self._used += gang.cores
        for gang in sorted(self._dispatched.values(), key=lambda each: each.arrives_s):
            if gang.name in waiting:
                able = [each.name for each in fleet.values() if each.fits(gang)]
                if able:
                    yield gang, self._rng.choice(able)

    def ended(self, gang: Gang, *, is_lost: bool) -> None:
        """Release the quota in the manager; a workload that lost its worker keeps it and is dispatched again."""
        if not is_lost:
            self._used -= self._dispatched.pop(gang.name).cores

    def next_look(self) -> float:
        """Never."""
        return _NEVER
