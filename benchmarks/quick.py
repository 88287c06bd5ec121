"""Check counted work against the limits in `limits.json`: reconciles, writes, requests to members, bytes on disk.

Propagates, scales, overrides and deletes some Deployments with simulated members, in half a minute, and makes some
scheduling decisions. Times are not checked: they depend on the machine. Exit code 1 names what exceeds its limit. The
limits leave room for a slow machine, which sees more intermediate states: up to twice as many reconciles, and three
times as many for an image. `tests/scenarios/test_reconciles_per_object.py` has the exact counts, on a virtual clock.

    python benchmarks/quick.py                        `make bench-quick`
    python benchmarks/quick.py --limits FILE          other limits

Decision: docs/decisions/0072-counts-are-checked-times-are-shown.md
"""

import argparse
import json
import sys
from pathlib import Path

from measured import FOLDER, BenchmarkFailed, run_benchmark
from report import print_report

ARGUMENTS = ("--deployments", "60", "--members", "3", "--pod-start", "0.1", "--timeout", "240")


def exceeded(results: dict[str, float], limits: dict[str, float]) -> list[str]:
    """Return a line for each result above its limit, and for each limit without a result."""
    lines = []
    for name, limit in limits.items():
        if name not in results:
            lines.append(f"{name}: not measured; remove it from the limits, or measure it again")
        elif results[name] > limit:
            lines.append(f"{name}: {results[name]:,.2f}, the limit is {limit:,g}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=Path, default=FOLDER / "limits.json", help="a JSON object: result, limit")
    options = parser.parse_args()
    limits = json.loads(options.limits.read_text())
    try:
        measured = run_benchmark("propagation", ARGUMENTS)
    except BenchmarkFailed as error:
        sys.stderr.write(f"bench-quick: {error}\n")
        return 1
    counted = {name: value for name, value in measured.results.items() if name in limits}
    print(f"{'work':34} {'measured':>10} {'limit':>10}")
    for name, value in counted.items():
        print(f"{name:34} {value:>10,.2f} {limits[name]:>10,g}{'   EXCEEDED' if value > limits[name] else ''}")
    found = exceeded(counted, limits)
    for line in found:
        sys.stderr.write(f"bench-quick: {line}\n")
    print_report("quick", measured.parameters, {**counted, "exceeded": len(found)})
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
