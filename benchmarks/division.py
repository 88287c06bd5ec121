"""Compare divisions of replicas by weight: KubeAdmiral's formula, the nearest division, and Webster's method.

    python benchmarks/division.py [--inputs 3000] [--seed 1]

Prints, over random weights and totals without bounds: the largest deviation from a cluster's exact share, the inputs with a deviation
of a replica or more, the inputs where one more replica takes one away from a cluster, and the replicas that move in random
histories of scaling beyond the difference of the totals. Webster's method, which Karmada uses, has no current replicas, so it
repeats the whole division each time. Results: docs/decisions/0081.
"""

import argparse
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from report import print_report

from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Plan, Preference, plan_replicas

Division = Callable[[Demand], Plan]


def plan_webster(demand: Demand) -> Plan:
    """Give replicas one by one to the largest quotient of weight and twice the number plus one."""
    given = dict.fromkeys(demand.clusters, 0)
    for _ in range(demand.total):
        most = max(given, key=lambda name: (Fraction(demand.preferences[name].weight, 2 * given[name] + 1), name))
        given[most] += 1
    return Plan(given, {})


METHODS: dict[str, Division] = {"KubeAdmiral": plan_replicas, "Nearest": plan_nearest, "Webster": plan_webster}


def random_demand(rng: random.Random) -> Demand:
    """Return a demand of 2 to 12 clusters with weights from 1 to 100."""
    names = tuple(f"member-{at}" for at in range(rng.randint(2, 12)))
    weights = {name: Preference(rng.randint(1, 100)) for name in names}
    return Demand(rng.randint(1, 8 * len(names)), names, weights, "default/web")


def deviation(demand: Demand, plan: Plan) -> float:
    """Return the largest difference of a cluster from its exact share."""
    weights = sum(own.weight for own in demand.preferences.values())
    return max(
        abs(count - demand.total * demand.preferences[name].weight / weights) for name, count in plan.replicas.items()
    )


def moved_beyond_need(divide: Division, demand: Demand, rng: random.Random) -> int:
    """Return the replicas that 10 scalings move beyond the difference of the totals."""
    held, moved = divide(demand).replicas, 0
    for _ in range(10):
        total = max(1, sum(held.values()) + rng.randint(-5, 5))
        now = divide(replace(demand, total=total, current=held)).replicas
        moved += sum(abs(now[name] - held[name]) for name in now) - abs(sum(now.values()) - sum(held.values()))
        held = now
    return moved // 2


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    results: dict[str, float] = {}
    print("method       largest deviation   one or more   not monotone   moved without need")
    for name, divide in METHODS.items():
        rng = random.Random(args.seed)
        demands = [random_demand(rng) for _ in range(args.inputs)]
        plans = [divide(demand) for demand in demands]
        deviations = list(map(deviation, demands, plans))
        more = [divide(replace(demand, total=demand.total + 1)).replicas for demand in demands]
        falls = sum(any(m[c] < n for c, n in p.replicas.items()) for p, m in zip(plans, more, strict=True))
        moved = sum(moved_beyond_need(divide, demand, rng) for demand in demands[:500])
        off = sum(amount > 1 - 1e-9 for amount in deviations)
        share, fall = 100 * off / len(demands), 100 * falls / len(demands)
        results |= {f"{name}_deviation_max": max(deviations), f"{name}_off_percent": share, f"{name}_moved": moved}
        print(f"{name:12} {max(deviations):17.2f} {share:11.1f} % {fall:12.1f} % {moved:20}")
    print_report("division", {"inputs": args.inputs, "seed": args.seed}, results, {"Nearest_off_percent": ("<=", 0)})


if __name__ == "__main__":
    main()
