"""Queues: the cost of a round with thousands of waiting jobs, and how long gangs wait (docs/reference/queues.md).

    .venv/bin/python benchmarks/job_queues.py

The first table is the CPU time of a round of the state with 20 clusters, 10 queues and 20 namespaces, and that of a
status of all queues, which is computed at most once a second. The jobs have 40 sizes, or every job is different, so
that none is recognised as equal to another: the worst case. The second table is one trace of 2,000 gangs on 20 members
that die and come back (`tests/support/gangfleet.py`), with this admission where the scheduler takes the fullest or the
freest cluster, with the rules of MultiKueue, and strictly first come first served. `largest` is the mean wait of gangs
of a whole cluster, `longest` their longest, `used` the part of living members in use while as much waits as they have.
Measured on two cores:

    waiting    sizes      round    per job   statuses
      2,500       40     6.1 ms     2.4 us    15.8 ms
      5,000       40    12.2 ms     2.4 us    31.7 ms
     10,000       40    23.9 ms     2.4 us    82.1 ms
      2,500      all    38.8 ms    15.5 us    19.4 ms
      5,000      all    79.7 ms    15.9 us    38.2 ms
     10,000      all   161.5 ms    16.2 us    83.2 ms
    admission         mean wait       P95   largest   longest    used  in part lost
    queue, packed         614 s    2576 s    2279 s    4914 s   97.8%        0     0
    queue, spread         709 s    4379 s    3770 s    7180 s   92.9%        0     0
    MultiKueue            742 s    3571 s    3152 s    6566 s   92.5%        0     0
    first come           2260 s    4264 s    2230 s    4582 s   86.6%        0     0
"""

import time
from random import Random
from statistics import median
from typing import Any

from tests.support.gangfleet import ByQueue, FirstCome, MultiKueue, Policy, simulate

from federation.features.queues.rules.configuration import Component
from federation.features.queues.rules.entries import Entry
from federation.features.queues.rules.queuestate import QueueState
from federation.features.queues.rules.queuestatus import compute_statuses
from federation.scheduling.framework.types import PodSet, pod_shape

CLUSTERS = 20
QUEUES = 10
TEAMS = 20


def _a_state(count: int, sizes: int) -> QueueState:
    state = QueueState()
    state.put_flavor("any", {"metadata": {"name": "any"}, "spec": {}})
    for at in range(QUEUES):
        quota = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": "5000"}]}
        spec = {"cohort": "all", "flavors": [quota], "namespaceSelector": {}, "pendingMax": count}
        state.put_queue(f"queue-{at}", {"metadata": {"name": f"queue-{at}"}, "spec": spec})
    for at in range(TEAMS):
        state.put_namespace(f"team-{at}", {})
        state.put_job_queue(f"team-{at}", "q", {"clusterJobQueue": f"queue-{at % QUEUES}"})
    for at in range(CLUSTERS):
        state.put_cluster(f"cluster-{at}", _a_cluster(f"cluster-{at}"))
    for at in range(count):
        state.put(_an_entry(at, 21 + at % sizes), 0.0)
    return state


def _a_cluster(name: str) -> dict[str, Any]:
    """Return a cluster of 100 nodes of 80 cores, 5 of which have 4 cores left and the others none."""
    conditions = [{"type": kind, "status": "True"} for kind in ("Joined", "Ready")]
    most = {"cpu": "80", "pods": "110"}
    free = [{"nodes": 5, "resources": {"cpu": "4", "pods": "110"}}, {"nodes": 95, "resources": {"pods": "110"}}]
    classes = [{"nodes": 100, "largest": most, "free": free}]
    resources = {"allocatable": {"cpu": "8000"}, "available": {"cpu": "20"}, "nodeClasses": classes}
    return {"metadata": {"name": name}, "spec": {}, "status": {"conditions": conditions, "resources": resources}}


def _an_entry(at: int, pods: int) -> Entry:
    shape = pod_shape((("cpu", 1_000),))
    return Entry(
        f"team-{at % TEAMS}/job-{at}",
        f"team-{at % TEAMS}",
        f"job-{at}",
        "Job",
        "q",
        float(at),
        (Component(frozenset(), pods, shape.request),),
        (PodSet("pods", pods, pods, shape),),
        {"cpu": pods * 1_000},
        (),
        None,
        None,
        frozenset(),
        frozenset(),
        has_finished=False,
        is_deleted=False,
    )


def measure_rounds() -> None:
    """Print the times of a round and of the statuses for several numbers of jobs."""
    print(f"{'waiting':>8} {'sizes':>8} {'round':>10} {'per job':>10} {'statuses':>10}")
    for sizes in (40, 4_096):
        for count in (2_500, 5_000, 10_000):
            state = _a_state(count, sizes)
            state.decide(0.0)  # the facts of jobs are computed once
            rounds = []
            for _ in range(5):
                started = time.process_time()
                decisions = state.decide(1.0)
                rounds.append(time.process_time() - started)
            started = time.process_time()
            compute_statuses(state, decisions, 1.0)
            status = time.process_time() - started
            assert len(decisions.waits) == count
            spent = median(rounds)
            name = "40" if sizes == 40 else "all"
            print(
                f"{count:>8,} {name:>8} {spent * 1e3:>7.1f} ms {spent / count * 1e6:>7.1f} us {status * 1e3:>7.1f} ms"
            )


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
