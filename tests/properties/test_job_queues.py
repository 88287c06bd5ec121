"""Admission of queues: never above the quota, independent of the order of its input, and without starvation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.facts import (
    Capacity,
    Decisions,
    Job,
    Option,
    Queue,
    Reclaim,
    Reservation,
    Room,
)
from federation.planning.accounts.usage import Limit

PAIR = ("any", "cpu")
CLUSTERS = ("east", "west")

limits = st.builds(Limit, st.integers(0, 12), st.none() | st.integers(0, 12), st.none() | st.integers(0, 12))
queues = st.lists(
    st.tuples(limits, st.sampled_from(("", "lab")), st.integers(1, 3), st.booleans(), st.sampled_from(list(Reclaim))),
    min_size=1,
    max_size=4,
).map(
    lambda found: {
        f"q{at}": Queue(f"q{at}", {PAIR: limit}, cohort, weight, False, within, reclaim, 3)
        for at, (limit, cohort, weight, within, reclaim) in enumerate(found)
    }
)
shapes = st.tuples(
    st.integers(0, 3), st.integers(0, 2), st.integers(1, 10), st.integers(0, 2), st.none() | st.integers(1, 20)
)
"""Queue, JobQueue, cores, priority, and limit."""
fleets = st.tuples(st.integers(1, 16), st.integers(1, 16))


def a_job(name: str, queue: str, cores: int, **more: object) -> Job:
    option = Option({PAIR: cores}, frozenset(CLUSTERS))
    return Job(name, queue, f"ns/{queue}", (option,), {"cpu": cores}, **more)  # type: ignore[arg-type]  # fields


def jobs_of(found: Sequence[tuple[int, int, int, int, int | None]], known: Mapping[str, Queue]) -> list[Job]:
    return [
        replace(
            a_job(f"j{at:03}", f"q{queue % len(known)}", cores, priority=priority, created_s=at, limit_s=limit),
            leaf=f"team-{leaf}/q{queue % len(known)}",
        )
        for at, (queue, leaf, cores, priority, limit) in enumerate(found)
    ]


def capacity(sizes: tuple[int, int], jobs: Sequence[Job], kept: Mapping[str, Reservation]) -> Capacity:
    rooms = {}
    for name, size in zip(CLUSTERS, sizes, strict=True):
        used = sum(job.needs["cpu"] for job in jobs if job.cluster == name)
        rooms[name] = Room({"cpu": size}, {"cpu": size - used})
    return Capacity(rooms, kept)


class World:
    """A fleet whose scheduler places a job in the first cluster with room, and whose jobs end when they are told."""

    def __init__(self, queues_: Mapping[str, Queue], jobs: Sequence[Job], sizes: tuple[int, int]) -> None:
        self.queues, self.sizes = queues_, sizes
        self.jobs = {job.key: job for job in jobs}
        self.kept: Mapping[str, Reservation] = {}
        self.now = 100.0
        self.started: list[str] = []

    def round(self) -> Decisions:
        found = admit(
            self.queues, self.jobs.values(), capacity(self.sizes, list(self.jobs.values()), self.kept), self.now
        )
        self.kept = found.reserved
        for key in found.evicted:  # it is gone at once
            self.jobs[key] = replace(self.jobs[key], holds=None, cluster="")
        for key, admitted in found.admitted.items():
            free = capacity(self.sizes, list(self.jobs.values()), {}).clusters
            fitting = [n for n in sorted(admitted.clusters) if free[n].free["cpu"] >= self.jobs[key].needs["cpu"]]
            assert fitting, "an admission has room that no other admission of the round may take"
            self.jobs[key] = replace(
                self.jobs[key], holds=admitted.holds, cluster=fitting[0], started_s=self.now, is_front=False
            )
            self.started.append(key)
        self.check()
        return found

    def settle(self) -> None:
        for _ in range(len(self.jobs) + 5):
            if not (found := self.round()).admitted and not found.evicted:
                return
        raise AssertionError("it does not come to an end")

    def check(self) -> None:
        used = dict.fromkeys(self.queues, 0)
        for job in self.jobs.values():
            used[job.queue] += (job.holds or {}).get(PAIR, 0)
        cohort = [queue for queue in self.queues.values() if queue.cohort]
        for name, queue in self.queues.items():
            limit = queue.limits[PAIR]
            if not queue.cohort:
                assert used[name] <= limit.nominal
            elif limit.borrowing is not None:
                assert used[name] <= limit.nominal + limit.borrowing
        lendable = sum(queue.limits[PAIR].nominal - queue.limits[PAIR].kept for queue in cohort)
        assert sum(max(0, used[queue.name] - queue.limits[PAIR].kept) for queue in cohort) <= lendable
        for name, size in zip(CLUSTERS, self.sizes, strict=True):
            assert sum(job.needs["cpu"] for job in self.jobs.values() if job.cluster == name) <= size


@given(queues, st.lists(shapes, max_size=14), fleets)
@examples(150)
def test_nothing_is_admitted_above_quota_and_borrowing_or_into_room_that_is_not_there(
    known: dict[str, Queue], found: list[tuple[int, int, int, int, int | None]], sizes: tuple[int, int]
) -> None:
    World(known, jobs_of(found, known), sizes).settle()


@given(queues, st.lists(shapes, max_size=12), fleets, st.randoms(use_true_random=False))
@examples(100)
def test_the_order_of_the_input_makes_no_difference(
    known: dict[str, Queue], found: list[tuple[int, int, int, int, int | None]], sizes: tuple[int, int], random: object
) -> None:
    jobs = jobs_of(found, known)
    shuffled = list(jobs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a Random
    shuffled_queues = dict(sorted(known.items(), reverse=True))

    first = admit(known, jobs, capacity(sizes, jobs, {}), 100.0)

    assert admit(shuffled_queues, shuffled, capacity(sizes, jobs, {}), 100.0) == first
    assert list(first.waits) == list(admit(shuffled_queues, shuffled, capacity(sizes, jobs, {}), 100.0).waits)


@given(queues, st.lists(shapes, max_size=12), fleets)
@examples(100)
def test_a_round_after_its_result_changes_nothing(
    known: dict[str, Queue], found: list[tuple[int, int, int, int, int | None]], sizes: tuple[int, int]
) -> None:
    world = World(known, jobs_of(found, known), sizes)
    world.settle()

    again = world.round()

    assert (again.admitted, again.evicted) == ({}, {})
    assert again == world.round()


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.none() | st.integers(1, 5)), min_size=1, max_size=30),
    st.integers(5, 10),
    st.integers(0, 5),
)
@examples(100)
def test_a_gang_that_fits_the_empty_fleet_starts_in_bounded_time(
    stream: list[tuple[int, int, int | None]], gang: int, head_start: int
) -> None:
    """Small jobs arrive without end; the gang starts when what ran before it was first has ended."""
    known = {"q0": Queue("q0", {PAIR: Limit(12)}), "q1": Queue("q1", {PAIR: Limit(12)})}
    running_s = 5.0
    world = World(known, [], (10, 4))
    arrived = 0
    for step in range(60):
        for cores, leaf, limit in stream:
            key = f"small-{arrived:05}"
            small = a_job(key, f"q{arrived % 2}", cores, created_s=world.now, limit_s=limit and float(limit))
            world.jobs[key] = replace(small, leaf=f"team-{leaf}/q")
            arrived += 1
        if step == head_start:
            world.jobs["gang"] = replace(a_job("gang", "q0", gang, created_s=world.now), leaf="team-1/q")
        world.round()
        if "gang" in world.started:
            return
        world.now += 1
        for key, job in list(world.jobs.items()):
            if job.cluster and world.now - job.started_s >= min(running_s, job.limit_s or running_s):
                del world.jobs[key]
        # What waits grows without end; what is behind the gang does not matter to it.
        waiting = [key for key, job in world.jobs.items() if job.is_waiting and key != "gang"]
        for key in waiting[40:]:
            del world.jobs[key]
    raise AssertionError("the gang starves")
