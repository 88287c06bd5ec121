"""Run the benchmarks of `goals.py` and print a table: goal, result, ratio, and whether the goal is met.

A ratio is that to the bare client where the goal is one, or else to the limit. With several turns, all benchmarks run
once per turn, and the table has the minimum and the median; the median decides. The last line on standard output is one
JSON object.

    python benchmarks/table.py                          `make bench`: once, in at most ten minutes
    python benchmarks/table.py --turns 3                three times
    python benchmarks/table.py --full                   as many objects as the goals say, for hours
    python benchmarks/table.py --only scheduling,journal
"""

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goals import GOALS, RUNS, Goal, Run
from measured import FOLDER, BenchmarkFailed, run_benchmark
from report import print_report


@dataclass(frozen=True, slots=True)
class Row:
    """A goal with its results of all turns; without any, `problem` says why."""

    goal: Goal
    values: tuple[float, ...] = ()
    bare: tuple[float, ...] = ()
    problem: str = ""

    @property
    def ratios(self) -> list[float]:
        """To the bare client of the same turn, or to the limit; to a limit of 0, the value itself."""
        if self.goal.bare:
            return [value / max(bare, 1e-9) for value, bare in zip(self.values, self.bare, strict=True)]
        return [value / (self.goal.limit or 1.0) for value in self.values]

    @property
    def verdict(self) -> str:
        if not self.values:
            return "not measured"
        if self.goal.bare:
            return "met" if statistics.median(self.ratios) <= self.goal.limit else "MISSED"
        return "met" if statistics.median(self.values) <= self.goal.limit else "MISSED"


def to_row(goal: Goal, run: Run, size: str, turns: Sequence[Mapping[str, Any] | str]) -> Row:
    """Return the row of a goal; a turn is the results of its run, or the reason why there are none."""
    measured = [turn for turn in turns if not isinstance(turn, str)]
    if not measured:
        return Row(goal, problem=str(turns[0]))
    name = goal.result.format(size=size)
    wanted = [key for key in (name, goal.bare) if key]
    if missing := [key for key in wanted if any(key not in turn for turn in measured)]:
        return Row(goal, problem=f"{run.script}.py has no result {missing[0]}")
    bare = tuple(float(turn[goal.bare]) for turn in measured) if goal.bare else ()
    return Row(goal, tuple(float(turn[name]) for turn in measured), bare)


def to_lines(rows: Sequence[Row], turns: int) -> list[str]:
    """Return the table as text."""
    figures = ["min", "median"] if turns > 1 else ["result"]
    cells = [["what", "goal", "bare client", *figures, "ratio", ""]]
    for row in rows:
        goal, unit = row.goal, row.goal.unit
        limit = f"<= {goal.limit:g} x bare" if goal.bare else f"<= {goal.limit:g} {unit}"
        if not row.values:
            cells.append([goal.what, limit, "", *([""] * len(figures)), "", row.verdict])
            continue
        bare = f"{to_text(statistics.median(row.bare))} {unit}" if row.bare else ""
        shown = [min(row.values), statistics.median(row.values)] if turns > 1 else list(row.values)
        ratio = f"{statistics.median(row.ratios):.2f}" if goal.limit else ""
        cells.append([goal.what, limit, bare, *(f"{to_text(each)} {unit}" for each in shown), ratio, row.verdict])
    widths = [max(len(line[at]) for line in cells) for at in range(len(cells[0]) - 1)]
    return [
        "  ".join(
            [f"{line[0]:<{widths[0]}}", f"{line[1]:<{widths[1]}}"]
            + [f"{cell:>{width}}" for cell, width in zip(line[2:-1], widths[2:], strict=True)]
            + [line[-1]]
        ).rstrip()
        for line in cells
    ]


def to_text(value: float) -> str:
    """Return the value with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1, help="how often each benchmark runs")
    parser.add_argument("--full", action="store_true", help="as many objects as the goals say")
    parser.add_argument("--only", default=",".join(RUNS), help="runs to make, with commas")
    parser.add_argument(
        "--details", type=Path, help="file to which all results of each run are appended, a JSON line each"
    )
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := set(wanted) - set(RUNS):
        parser.error(f"--only: {', '.join(sorted(unknown))}: choose from {', '.join(RUNS)}")
    if options.turns < 1:
        parser.error("--turns: at least 1")
    sizes = {name: run.full_size if options.full else run.size for name, run in RUNS.items()}
    turns: dict[str, list[dict[str, Any] | str]] = {name: [] for name in wanted}
    started, loops_s = time.monotonic(), []
    for turn in range(options.turns):
        loops_s.append(time_loop())
        for name in wanted:
            turns[name].append(measure(RUNS[name], sizes[name], f"turn {turn + 1}, {name}", is_full=options.full))
            if options.details is not None:
                with options.details.open("a") as file:
                    print(json.dumps({"turn": turn + 1, "run": name, "results": turns[name][-1]}), file=file)
    rows = [to_row(goal, RUNS[goal.run], sizes[goal.run], turns[goal.run]) for goal in GOALS if goal.run in wanted]
    print("\n" + "\n".join(to_lines(rows, options.turns)) + "\n")
    for problem in dict.fromkeys(row.problem for row in rows if row.problem):
        print(f"not measured: {problem}")
    results = {
        row.goal.what: {
            "values": row.values,
            "bare": row.bare,
            "ratios": row.ratios,
            "verdict": row.verdict,
            "problem": row.problem,
        }
        for row in rows
    }
    print(f"{time.monotonic() - started:.0f} s; 10 million additions take this Python {min(loops_s):.2f} s")
    parameters = {"turns": options.turns, "full": options.full, "sizes": sizes, "loopsS": loops_s}
    print_report("table", parameters, results)


def time_loop() -> float:
    """Return the seconds for 10 million additions, so that results of different machines can be compared."""
    started, total = time.perf_counter(), 0
    for number in range(10_000_000):
        total += number
    return round(time.perf_counter() - started, 3)


def measure(run: Run, size: str, label: str, *, is_full: bool) -> dict[str, Any] | str:
    """Run the benchmark; return its results, or the reason why there are none."""
    if not (FOLDER / f"{run.script}.py").exists():
        return f"there is no {run.script}.py"
    arguments = tuple(run.arguments.format(size=size).split())
    print(f"{label}: {run.script}.py {' '.join(arguments)}", end="", flush=True)
    try:
        measured = run_benchmark(run.script, arguments, 4 * 3600.0 if is_full else 600.0)
    except BenchmarkFailed as error:
        print("  failed", flush=True)
        return str(error)
    print(f"  {measured.seconds:.0f} s", flush=True)
    return measured.results


if __name__ == "__main__":
    main()
