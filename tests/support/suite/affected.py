"""Run the tests that a change can reach, the closest first, for about a minute.

    python -m tests.support.suite.affected                    changes that are not committed, or else the last commit
    python -m tests.support.suite.affected --base main~3      everything since that commit
    python -m tests.support.suite.affected --all              without the limit of a minute
    python -m tests.support.suite.affected --list             print the test modules and run nothing

A test module is reached when it needs a changed file, directly or through other files (`importgraph.py`). Tests of the
architecture read all files and always run. Tests of whole worlds need nearly everything; they come last, and what the
minute has no room for is named. `make test` runs it.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.support.sources import ROOT
from tests.support.suite.costs import Record
from tests.support.suite.importgraph import READS_EVERYTHING, ImportGraph

BUDGET_CPU_S = 60.0
"""With two workers and their start, this ends in a minute on two cores."""
_ALONE_CPU_S = 15.0
"""Up to this, one process is quicker than workers, which cost 8 s to start."""
_UNKNOWN_S = 1.0
"""A module without a record costs this."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs, and the reached modules that do not."""

    runs: list[str]
    left: list[str]
    cpu_s: float
    left_cpu_s: float


def changed_files(base: str | None) -> list[str]:
    """Return the paths that changed since `base`; without it those that are not committed, or those of the last commit."""
    if base:
        return _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")
    dirty = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return dirty or _git("diff", "--name-only", "HEAD~1", "HEAD")


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"affected: git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def choose(distances: Mapping[str, int], record: Record, *, budget_cpu_s: float | None) -> Choice:
    """Return the test modules in `distances`, the closest and then the cheapest first, up to the budget."""
    tests = [name for name in distances if _is_test(name)]
    runs: list[str] = []
    left: list[str] = []
    used = left_used = 0.0
    for name in sorted(tests, key=lambda name: (distances[name], _cost_s(record, name), name)):
        cost_s = _cost_s(record, name)
        # The change itself always runs, whatever it costs, and so do the cheap tests that every change can reach.
        is_certain = distances[name] == 0 or name.startswith(READS_EVERYTHING)
        if budget_cpu_s is None or is_certain or used + cost_s <= budget_cpu_s:
            runs.append(name)
            used += cost_s
        else:
            left.append(name)
            left_used += cost_s
    return Choice(runs, left, used, left_used)


def _cost_s(record: Record, name: str) -> float:
    return record.cpu_s(name) if name in record.files else _UNKNOWN_S


def _is_test(name: str) -> bool:
    is_module = name.rpartition("/")[2].startswith("test_") and name.endswith(".py")
    return is_module and not name.startswith("tests/kubernetes/") and (ROOT / name).is_file()


def main() -> int:
    """Return the exit code of pytest; 0 when nothing is reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="a commit; everything that changed since counts")
    parser.add_argument("--all", action="store_true", help="run all reached tests, however long they take")
    parser.add_argument("--list", action="store_true", help="print the test modules and run nothing")
    options = parser.parse_args()
    changed = changed_files(options.base)
    distances = ImportGraph().distances(changed)
    choice = choose(distances, Record.load(), budget_cpu_s=None if options.all else BUDGET_CPU_S)
    reached = len(choice.runs) + len(choice.left)
    print(
        f"{len(changed)} changed files reach {reached} test modules; {len(choice.runs)} run (about {choice.cpu_s:.0f} CPU seconds)."
    )
    if choice.left:
        print(
            f"{len(choice.left)} others are left to `make test` (about {choice.left_cpu_s:.0f} CPU seconds; ALL=1 runs them)."
        )
    sys.stdout.flush()
    if options.list or not choice.runs:
        _print(choice.runs)
        return 0
    return subprocess.run([sys.executable, "-m", "pytest", *arguments(choice)], cwd=ROOT, check=False).returncode


def arguments(choice: Choice) -> list[str]:
    """Return the arguments of pytest. The modules are sorted: it loses the fixtures of a folder to which it comes back."""
    workers = ["-n", "2", "--dist", "loadgroup"] if choice.cpu_s > _ALONE_CPU_S else []
    return [*workers, *sorted(choice.runs)]


def _print(names: Iterable[str]) -> None:
    for name in names:
        print(name)


if __name__ == "__main__":
    sys.exit(main())
