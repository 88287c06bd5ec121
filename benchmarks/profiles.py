"""Compare the control plane with a bare client at three kinds of members: light, real, and real and far away.

Fleets are far away, so what limits the propagation differs: CPU with light members, the members with real ones, round
trips with those that are 20 ms away. Each turn runs `propagation.py` twice for each kind, all at once and one object per
second. A figure is the ratio to the bare client of the same run; of several turns, the median. The last line on
standard output is one JSON object, with the minimum and all turns, too.

    python benchmarks/profiles.py                            one turn, about eighteen minutes on an idle machine
    python benchmarks/profiles.py --turns 3
    python benchmarks/profiles.py --only light,far
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from goals import GOALS, Goal
from measured import BenchmarkFailed, run_benchmark
from report import print_report

PROFILES = {
    "light": ("--light",),
    "real": ("--real-members",),
    "far": ("--real-members", "--latency", "20"),
}
"""Arguments of `propagation.py` by profile."""
RUNS = {"propagation": (), "latency": ("--rate", "1")}
"""Further arguments by the run that a goal names."""
SHOWN = tuple(goal for goal in GOALS if goal.run in RUNS)

Turn = Mapping[str, Mapping[str, Any]]
"""The results of one profile by run; a run that failed is missing."""


def to_ratios(goal: Goal, turns: Sequence[Turn]) -> list[float]:
    """Return the ratio of each turn that measured the goal: to the bare client, or to the limit."""
    found = []
    for turn in turns:
        results = turn.get(goal.run, {})
        if goal.result not in results or (goal.bare and goal.bare not in results):
            continue
        found.append(results[goal.result] / max(results[goal.bare] if goal.bare else goal.limit, 1e-9))
    return found


def to_lines(turns: Mapping[str, Sequence[Turn]]) -> list[str]:
    """Return the table as text: a line per goal, a column per profile."""
    lines = [
        f"{'ratio to the bare client, or (*) to the goal':48}{'goal':>8}" + "".join(f"{name:>10}" for name in turns)
    ]
    for goal in SHOWN:
        what, limit = (goal.what, goal.limit) if goal.bare else (f"{goal.what} *", 1.0)
        cells = (to_ratios(goal, each) for each in turns.values())
        figures = "".join(f"{statistics.median(cell):>10.2f}" if cell else f"{'-':>10}" for cell in cells)
        lines.append(f"{what:48}{limit:>8.2f}{figures}")
    return lines


def to_results(turns: Mapping[str, Sequence[Turn]]) -> dict[str, Any]:
    """Return medians and minima of the ratios, and the measured values, by profile and result."""
    results: dict[str, Any] = {}
    for name, measured in turns.items():
        for goal in SHOWN:
            if ratios := to_ratios(goal, measured):
                key = f"{name}_{goal.run}_{goal.result}"
                results |= {f"{key}_ratio": statistics.median(ratios), f"{key}_ratio_min": min(ratios)}
                for kind, field in (("", goal.result), ("_bare", goal.bare)):
                    if field:
                        results[key + kind] = [turn[goal.run][field] for turn in measured if goal.run in turn]
    return results


def measure(profile: str, sizes: Mapping[str, int], title: str) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for run, arguments in RUNS.items():
        started = time.monotonic()
        try:
            count = ("--deployments", str(sizes[run]))
            found[run] = run_benchmark("propagation", (*PROFILES[profile], *arguments, *count), 900).results
        except BenchmarkFailed as problem:
            print(f"{title}, {run}: {problem}", flush=True)
        print(f"{title}, {run}: {time.monotonic() - started:.0f} s", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--only", default=",".join(PROFILES), help="profiles, with commas")
    parser.add_argument("--deployments", type=int, default=150, help="Deployments that are created at once")
    parser.add_argument("--latencies", type=int, default=20, help="Deployments that are created one per second")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := set(wanted) - set(PROFILES):
        parser.error(f"--only: {', '.join(sorted(unknown))}: choose from {', '.join(PROFILES)}")
    if options.turns < 1:
        parser.error("--turns: at least 1")
    sizes = {"propagation": options.deployments, "latency": options.latencies}
    turns: dict[str, list[Turn]] = {name: [] for name in wanted}
    for turn in range(1, options.turns + 1):
        for name in wanted:
            turns[name].append(measure(name, sizes, f"turn {turn}, {name}"))
    print("\n" + "\n".join(to_lines(turns)) + "\n")
    print_report("profiles", {"turns": options.turns, **sizes}, to_results(turns))


if __name__ == "__main__":
    main()
