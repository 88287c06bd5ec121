"""Queues: the cost of a round with thousands of waiting jobs, and how long gangs wait (docs/reference/queues.md).

    .venv/bin/python benchmarks/job_queues.py

The first table is the CPU time of a round. Every job is different, so that none is recognised as equal to another: the
worst case. The second table is one trace of 2,000 gangs on 20 members that die and come back
(`tests/support/gangfleet.py`), with this admission where the scheduler takes the fullest or the freest cluster, with the rules of MultiKueue, and strictly first come first served. `largest` is the mean wait of
gangs of a whole cluster, `longest` their longest, `used` the part of living members in use while as much waits as they
have. Measured on two cores:

    waiting      round    per job
      1,000      28 ms    27.9 us
     10,000     295 ms    29.5 us
     20,000     594 ms    29.7 us

    admission         mean wait       P95   largest   longest    used  in part lost
    queue, packed         614 s    2576 s    2279 s    4914 s   97.8%        0     0
    queue, spread         709 s    4379 s    3770 s    7180 s   92.9%        0     0
    MultiKueue            742 s    3571 s    3152 s    6566 s   92.5%        0     0
    first come           2260 s    4264 s    2230 s    4582 s   86.6%        0     0
"""

import time
from random import Random

from tests.support.gangfleet import ByQueue, FirstCome, MultiKueue, Policy, simulate

from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.facts import Capacity, Job, Limit, Option, Queue, Room

CLUSTERS = 20
QUEUES = 10
TEAMS = 20
NAMES = frozenset(f"cluster-{n:02}" for n in range(CLUSTERS))
PAIR = ("any", "cpu")


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


def main() -> None:
    """Print both tables."""
    measure_rounds()
    print(
        f"\n{'admission':<16} {'mean wait':>10} {'P95':>9} {'largest':>9} {'longest':>9} {'used':>7} {'in part':>8} lost"
    )
    policies: dict[str, Policy] = {
        "queue, packed": ByQueue(),
        "queue, spread": ByQueue(packs=False),
        "MultiKueue": MultiKueue(20, Random(1)),
        "first come": FirstCome(),
    }
    for name, policy in policies.items():
        print(f"{name:<16} {simulate(policy, seed=1, gangs=2_000).line()}")


if __name__ == "__main__":
    main()
