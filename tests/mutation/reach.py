"""Which tests execute a line, and in what time: recorded by coverage in one run of all tests, kept in `.mutation`.

`Reach.tests_of` returns the tests of a mutation, closest first: those that mirror its module, other unit tests,
properties, conformance, scenarios.
"""

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import coverage
from coverage.data import CoverageData

from tests.mutation.mutations import Mutation
from tests.mutation.workers import run_forked

_FOLDER = Path(".mutation")
_TREES = ("federation", "plugins", "tests")
_PER_TURN = 5
"""Tests of one file that run before those of the next one, so that a module's fixtures serve several."""
_HEIGHTS = ("tests/unit/", "tests/properties/", "tests/conformance/", "tests/scenarios/")


class Reach:
    """The recorded run. `tests` has the CPU seconds and the tier ("check" or "test") of each test that passed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / _FOLDER
        self._folder.mkdir(exist_ok=True)
        self._data = CoverageData(str(self._folder / "coverage"))
        self._contexts: dict[str, dict[int, list[str]]] = {}
        self._record = self._folder / "tests.json"
        found = json.loads(self._record.read_text()) if self._record.exists() else {"sources": "", "tests": {}}
        self.sources: str = found["sources"]
        self.tests: dict[str, tuple[float, str, bool]] = found["tests"]

    def is_current(self) -> bool:
        """Return whether it was recorded with the present sources."""
        return self.sources == _sources(self._root)

    def clear(self) -> None:
        """Forget what other sources did."""
        self._data.erase()
        self.tests = {}

    def record(self, tests: Iterable[Any], run: Callable[..., Any], tier: Callable[[Any], str], workers: int) -> None:
        """Run the tests that are not recorded yet, a file at a time."""
        files: dict[str, list[Any]] = {}
        for test in tests:
            if test.nodeid not in self.tests:
                files.setdefault(test.nodeid.split("::")[0], []).append(test)
        shares = [(number, share) for number, share in enumerate(files.values())]

        def measure(job: tuple[int, list[Any]]) -> Any:
            part = self._folder / f"part{job[0]}"
            cover = coverage.Coverage(
                data_file=str(part), include=[f"{self._root}/{tree}/*" for tree in _TREES[:2]], config_file=False
            )
            cover.start()
            results = run(job[1], before=lambda test: cover.switch_context(test.nodeid))
            cover.stop()
            cover.save()
            return results

        for (number, share), results in run_forked(shares, measure, workers=workers, cpu_s=600, wall_s=3_600):
            part = self._folder / f"part{number}"
            tiers = {test.nodeid: tier(test) for test in share}
            for nodeid, (seconds, problem) in (results or {}).items():
                self.tests[nodeid] = seconds, tiers[nodeid], not problem
            if results is not None and part.exists():
                other = CoverageData(str(part))
                other.read()
                self._data.update(other)
            part.unlink(missing_ok=True)
            print(f"  {share[0].nodeid.split('::')[0]}: {len(results or {})} tests", flush=True)
            self._record.write_text(json.dumps({"sources": self.sources, "tests": self.tests}))
        self.sources = _sources(self._root)
        self._record.write_text(json.dumps({"sources": self.sources, "tests": self.tests}))

    def tests_of(self, mutation: Mutation, budget_s: float) -> list[str]:
        """Return the tests that execute the mutated statement, closest first, as many as the budget allows."""
        contexts = self._contexts_of(mutation.path)
        first, last = mutation.place.lines
        found = {name for line in range(first, last + 1) for name in contexts.get(line, ())}
        if not mutation.place.function and not found - {""}:  # executed when it is imported
            found = {name for names in contexts.values() for name in names}
        known = [name for name in found if name in self.tests and self.tests[name][2]]
        return self._within(budget_s, sorted(known, key=lambda name: (_distance(name, mutation.path), name)), mutation)

    def _within(self, budget_s: float, tests: list[str], mutation: Mutation) -> list[str]:
        """Order by closeness, then in turns of a few quick tests of each file."""
        turns, orders = dict[str, int](), []
        for name in sorted(tests, key=lambda name: self.tests[name][0]):
            file = name.split("::")[0]
            turn = turns[file] = turns.get(file, 0) + 1
            orders.append(
                (self.tests[name][1] != "check", _distance(name, mutation.path), turn // _PER_TURN, file, name)
            )
        chosen, spent_s = list[str](), 0.0
        for *_, name in sorted(orders):
            spent_s += self.tests[name][0] + 0.005
            if spent_s > budget_s:
                break
            chosen.append(name)
        return chosen

    def _contexts_of(self, path: str) -> dict[int, list[str]]:
        if path not in self._contexts:
            self._contexts[path] = self._data.contexts_by_lineno(str(self._root / path))
        return self._contexts[path]


def _distance(test: str, path: str) -> int:
    """Return how far a test is from a module: 0 for the unit tests of the module, 1 for those of its package."""
    file = Path(test.split("::", maxsplit=1)[0])
    module = Path(path)
    mirrored = Path("tests/unit", *module.parts[1:])
    if file.name == f"test_{module.name}":
        return 0
    if file.is_relative_to(mirrored.parent):
        return 1
    return 2 + next((rank for rank, height in enumerate(_HEIGHTS) if test.startswith(height)), len(_HEIGHTS))


def _sources(root: Path) -> str:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard", *_TREES], cwd=root, capture_output=True, check=True
    )
    digest = hashlib.sha256()
    for name in sorted(filter(None, listed.stdout.decode().split("\0"))):
        if name.endswith(".py") and (root / name).exists():
            digest.update(name.encode() + (root / name).read_bytes())
    return digest.hexdigest()
