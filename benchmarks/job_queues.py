"""Queues: the cost of a round with thousands of waiting jobs, and how long gangs wait (docs/reference/queues.md).

    .venv/bin/python benchmarks/job_queues.py

The first table is the CPU time of a round. Every job is different, so that none is recognised as equal to another: the
worst case. The second table is one trace of gangs on 20 clusters under saturation, with this admission, strictly first
come first served, and with whatever fits going first, as in queues that keep no room. Measured on two cores:

    waiting      round    per job
      1,000      28 ms    27.9 us
     10,000     295 ms    29.5 us
     20,000     594 ms    29.7 us

    admission         mean wait      P95  largest   used
    queue                 107 s    458 s    755 s  87.6%
    first come            383 s    833 s    921 s  81.4%
    whatever fits          74 s    454 s    873 s  88.0%
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import mean, quantiles

from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.facts import Capacity, Job, Limit, Option, Queue, Reservation, Room

CLUSTERS = 20
QUEUES = 10
TEAMS = 20
CORES = 96
NAMES = frozenset(f"cluster-{n:02}" for n in range(CLUSTERS))
PAIR = ("any", "cpu")
Choose = Callable[[list[Job], Mapping[str, int], float], dict[str, str]]
"""From waiting jobs in their order, free cores by cluster and the time to the clusters of those that start."""


def _different_jobs(count: int) -> list[Job]:
    jobs = []
    for at in range(count):
        cores = 8 + at % 4096
        queue = f"queue-{at % QUEUES}"
        option = Option({PAIR: cores}, NAMES)
        jobs.append(Job(f"job-{at}", queue, f"team-{at % TEAMS}/{queue}", (option,), {"cpu": cores}, created_s=at))
    return jobs


def measure_rounds() -> None:
    """Print the time of a round for several numbers of jobs."""
    queues = {f"queue-{n}": Queue(f"queue-{n}", {PAIR: Limit(5_000)}, "all") for n in range(QUEUES)}
    rooms = {name: Room({"cpu": 8_000}, {"cpu": 400}) for name in NAMES}
    print(f"{'waiting':>8} {'round':>10} {'per job':>10}")
    for count in (1_000, 5_000, 10_000, 20_000):
        jobs = _different_jobs(count)
        started = time.process_time()
        admit(queues, jobs, Capacity(rooms), 0.0)
        spent = time.process_time() - started
        print(f"{count:>8,} {spent * 1e3:>7.0f} ms {spent / count * 1e6:>7.1f} us")


class ByQueue:
    """This admission; the scheduler takes the fullest cluster that has room."""

    def __init__(self) -> None:
        self._queues = {"q": Queue("q", {PAIR: Limit(CLUSTERS * CORES)})}
        self._kept: Mapping[str, Reservation] = {}
        self.running: dict[str, Job] = {}

    def __call__(self, waiting: list[Job], free: Mapping[str, int], now: float) -> dict[str, str]:
        left, placed = dict(free), dict[str, str]()
        while True:  # a round after each placement, as placements change what there is
            rooms = {name: Room({"cpu": CORES}, {"cpu": amount}) for name, amount in left.items()}
            jobs = [*self.running.values(), *(job for job in waiting if job.key not in placed)]
            found = admit(self._queues, jobs, Capacity(rooms, self._kept), now)
            self._kept = found.reserved
            if not found.admitted:
                return placed
            for job in waiting:
                if (admitted := found.admitted.get(job.key)) is not None:
                    cluster = min((n for n in admitted.clusters if left[n] >= job.needs["cpu"]), key=lambda n: left[n])
                    left[cluster] -= job.needs["cpu"]
                    placed[job.key] = cluster
                    self.running[job.key] = replace(job, holds=admitted.holds, cluster=cluster, started_s=now)


def first_come(waiting: list[Job], free: Mapping[str, int], _: float) -> dict[str, str]:
    """Start jobs in their order until one does not fit."""
    return _fill(waiting, free, is_strict=True)


def whatever_fits(waiting: list[Job], free: Mapping[str, int], _: float) -> dict[str, str]:
    """Start every job that fits."""
    return _fill(waiting, free, is_strict=False)


def _fill(waiting: list[Job], free: Mapping[str, int], *, is_strict: bool) -> dict[str, str]:
    left, placed = dict(free), dict[str, str]()
    for job in waiting:
        cluster = min((n for n in left if left[n] >= job.needs["cpu"]), key=lambda n: left[n], default="")
        if cluster:
            left[cluster] -= job.needs["cpu"]
            placed[job.key] = cluster
        elif is_strict:
            break
    return placed


def simulate(choose: Choose, gangs: int, seed: int = 1) -> tuple[float, float, float, float]:
    """Return mean wait, P95, the longest wait of a gang of a whole cluster, and utilisation while jobs arrive."""
    rng = random.Random(seed)
    arrivals, at = [], 0.0
    for number in range(gangs):
        cores = rng.choice((4, 8, 8, 16, 16, 24, 32, 48, CORES))
        run = rng.expovariate(1 / 600)
        at += rng.expovariate(1 / (600 * 28 / (CLUSTERS * CORES)))  # as much as there is, on average
        job = Job(f"g-{number:05}", "q", "t/q", (Option({PAIR: cores}, NAMES),), {"cpu": cores}, created_s=at)
        arrivals.append((at, job, run))
    free, waiting, ends = dict.fromkeys(NAMES, CORES), list[Job](), list[tuple[float, Job, str]]()
    runs = {job.key: run for _, job, run in arrivals}
    waits, largest, used, last, now = list[float](), 0.0, 0.0, arrivals[-1][0], 0.0
    pending = arrivals[::-1]
    while pending or waiting or ends:
        upcoming = min(pending[-1][0] if pending else float("inf"), ends[0][0] if ends else float("inf"))
        used += max(0.0, min(upcoming, last) - min(now, last)) * (CLUSTERS * CORES - sum(free.values()))
        now = upcoming
        while pending and pending[-1][0] <= now:
            waiting.append(pending.pop()[1])
        while ends and ends[0][0] <= now:
            _, job, cluster = ends.pop(0)
            free[cluster] += job.needs["cpu"]
            getattr(choose, "running", {}).pop(job.key, None)
        for key, cluster in choose(waiting, free, now).items():
            job = next(each for each in waiting if each.key == key)
            waiting.remove(job)
            free[cluster] -= job.needs["cpu"]
            ends.append((now + runs[key], job, cluster))
            waits.append(now - job.created_s)
            if job.needs["cpu"] == CORES:
                largest = max(largest, waits[-1])
        ends.sort(key=lambda end: end[0])
    return mean(waits), quantiles(waits, n=20)[-1], largest, used / (last * CLUSTERS * CORES)


def main() -> None:
    """Print both tables."""
    measure_rounds()
    print(f"\n{'admission':<16} {'mean wait':>10} {'P95':>8} {'largest':>8} {'used':>6}")
    policies: dict[str, Choose] = {
        "queue": ByQueue(),
        "first come": first_come,
        "whatever fits": whatever_fits,
    }
    for name, choose in policies.items():
        average, high, largest, used = simulate(choose, 600)
        print(f"{name:<16} {average:>8.0f} s {high:>6.0f} s {largest:>6.0f} s {used:>6.1%}")


if __name__ == "__main__":
    main()
