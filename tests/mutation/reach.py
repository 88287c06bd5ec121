"""Which tests execute a line, and in what time: recorded by coverage in one run of all tests, kept in `.mutation`.

`Reach.tests_of` returns the tests of a mutation, closest first: those that mirror its module, other unit tests,
properties, conformance, scenarios.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import coverage

from tests.mutation.mutations import Mutation
from tests.mutation.workers import run_forked

_SAVE_S = 30.0
_PER_TURN = 5
"""Tests of one file that run before those of the next one, so that a module's fixtures serve several."""
_FAR = 10
"""The distance of unit tests of other packages; no package is so deep."""
_HEIGHTS = ("tests/unit/", "tests/properties/", "tests/conformance/", "tests/scenarios/")


class Reach:
    """The recorded run. `tests` has the CPU seconds, the tier and the success of each test."""

    def __init__(self, root: Path, measured: Sequence[str]) -> None:
        self._root = root
        self._measured = measured
        self._folder = root / ".mutation"
        self._folder.mkdir(exist_ok=True)
        self._file = self._folder / "reach.json"
        found = json.loads(self._file.read_text()) if self._file.exists() else {}
        self._numbers: dict[str, int] = found.get("numbers", {})
        self._lines: dict[str, dict[str, list[int]]] = found.get("lines", {})
        """By path and line, the numbers of the tests."""
        self.tests: dict[str, tuple[float, str, bool]] = found.get("tests", {})
        self._digests = _digests(root, measured)
        self._forget_changed(found.get("digests", {}))

    def _forget_changed(self, before: dict[str, str]) -> None:
        """Forget the tests whose file has changed, or that execute a file that has changed."""
        changed = {path for path in before.keys() | self._digests.keys() if before.get(path) != self._digests.get(path)}
        numbers = {number for path in changed for found in self._lines.pop(path, {}).values() for number in found}
        gone = {name for name, number in self._numbers.items() if number in numbers or name.split("::")[0] in changed}
        self.tests = {name: known for name, known in self.tests.items() if name not in gone}
        numbers = {self._numbers[name] for name in gone & self._numbers.keys()}
        for lines in self._lines.values() if numbers else ():
            for line, found in lines.items():
                lines[line] = [number for number in found if number not in numbers]

    def record(self, tests: Iterable[Any], run: Callable[..., Any], tier: Callable[[Any], str], workers: int) -> None:
        """Run the tests that are not recorded yet, a file at a time."""
        files: dict[str, list[Any]] = {}
        for test in tests:
            if test.nodeid not in self.tests:
                files.setdefault(test.nodeid.split("::")[0], []).append(test)
        saved_s = time.monotonic()
        for share, answer in run_forked(
            list(files.values()), lambda share: self._measure(share, run), workers=workers, cpu_s=600, wall_s=3_600
        ):
            results, lines = answer or ({}, {})
            print(f"  {share[0].nodeid.split('::')[0]}: {len(results)} tests", flush=True)
            for test in share:
                if test.nodeid in results:
                    seconds, is_failed = results[test.nodeid]
                    self.tests[test.nodeid] = seconds, tier(test), not is_failed
            self.add_lines(lines)
            if time.monotonic() > saved_s + _SAVE_S:
                self._save()
                saved_s = time.monotonic()
        self._save()

    def add_lines(self, lines: dict[str, dict[str, list[str]]]) -> None:
        """Add what tests execute: by path and line, their names."""
        for path, found in lines.items():
            known = self._lines.setdefault(path, {})
            for line, names in found.items():
                known.setdefault(line, []).extend(self._number(name) for name in names if name)

    def _measure(self, share: list[Any], run: Callable[..., Any]) -> Any:
        """Run tests; return their results, and by path and line the tests that execute it."""
        include = [f"{self._root}/{folder}/*" for folder in self._measured]
        cover = coverage.Coverage(data_file=None, include=include, config_file=False)
        cover.start()
        results = run(share, before=lambda test: cover.switch_context(test.nodeid))
        cover.stop()
        with warnings.catch_warnings(action="ignore"):  # tests that execute none of these packages
            data = cover.get_data()
        return results, {
            str(Path(path).relative_to(self._root)): data.contexts_by_lineno(path) for path in data.measured_files()
        }

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _save(self) -> None:
        found = {"digests": self._digests, "numbers": self._numbers, "lines": self._lines, "tests": self.tests}
        self._file.write_text(json.dumps(found))

    def tests_of(self, mutation: Mutation, budget_s: float, collected: Container[str]) -> list[str]:
        """Return the tests that execute the mutated statement, closest first, as many as the budget allows."""
        lines, names = self._lines.get(mutation.path, {}), list(self._numbers)
        first, last = mutation.place.lines
        numbers = {number for line in range(first, last + 1) for number in lines.get(str(line), ())}
        if not mutation.place.function and not numbers:  # executed when it is imported
            numbers = {number for found in lines.values() for number in found}
            if not numbers:  # a module of constants and types, which every test has imported
                numbers = set(self._numbers.values())
        found = [names[number] for number in numbers]
        known = [name for name in found if name in collected and name in self.tests and self.tests[name][2]]
        return self._within(budget_s, sorted(known), mutation)

    def forget(self, test: str) -> None:
        """Use a test no more: it fails without a mutation, too."""
        seconds, tier, _ = self.tests[test]
        self.tests[test] = seconds, tier, False

    def _within(self, budget_s: float, tests: list[str], mutation: Mutation) -> list[str]:
        """Order by closeness, then in turns of a few quick tests of each file."""
        turns, orders = dict[str, int](), []
        for name in sorted(tests, key=lambda name: self.tests[name][0]):
            file = name.split("::")[0]
            turn = turns[file] = turns.get(file, 0) + 1
            orders.append((_distance(name, mutation.path), turn // _PER_TURN, file, name))
        chosen, left_s = list[str](), 0.0
        for tier in ("check", "test"):  # slow tests have a budget of their own, which quick ones cannot use up
            left_s += budget_s / 2
            for *_, name in sorted(order for order in orders if self.tests[order[-1]][1] == tier):
                left_s -= self.tests[name][0] + 0.005
                if left_s < 0:
                    break
                chosen.append(name)
            left_s = max(left_s, 0.0)
        return chosen


def _distance(test: str, path: str) -> int:
    """Return how far a test is from a module: 0 for the unit tests of the module, then those of its packages, inner first.

    The tests of `features/waves/rules` are in the folder of `features/waves`.
    """
    file = Path(test.split("::", maxsplit=1)[0])
    module = Path(path)
    mirrored = Path("tests/unit", *(("plugins", module.name) if module.parts[0] == "plugins" else module.parts[1:]))
    if file.name == f"test_{module.name}":
        return 0
    above = [*mirrored.parents][:-3]  # up to those of `tests/unit`
    for distance, package in enumerate(above, start=1):
        if file.is_relative_to(package):
            return distance
    return _FAR + next((rank for rank, height in enumerate(_HEIGHTS) if test.startswith(height)), len(_HEIGHTS))


def _digests(root: Path, measured: Sequence[str]) -> dict[str, str]:
    """Return a digest of each file that is measured, or that has tests."""
    files = [path for folder in measured for path in (root / folder).rglob("*.py")] + [
        *(root / "tests").rglob("test_*.py")
    ]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
