"""`python -m tests.mutation.run --sample 300 --seed 1`: mutates product code and counts how many mutations tests notice.

All tests are collected once. Each mutation is made in a forked copy of that process: the mutated function gets other
code, and the tests that execute it run, closest first, until one fails. No file is changed. A mutation outside of
functions needs a new process that imports it. `equivalent.txt` lists mutations that change no behaviour.
"""

import argparse
import gc
import hashlib
import json
import mmap
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutation.mutations import Mutation, mutations_of
from tests.mutation.reach import Reach
from tests.mutation.workers import run_forked
from tests.support.suite.tiers import items_of_check

ROOT = Path(__file__).parents[2]
AREAS = {
    "scheduling": ["federation/scheduling"],
    "planning": ["federation/planning"],
    "features": ["federation/features"],
    "delivery": ["federation/delivery", "federation/guard"],
    "store": ["federation/apiserver/store"],
    "auth": ["federation/apiserver/auth"],
    "member proxy": ["federation/memberproxy"],
    "plugins": ["plugins/federation_plugins"],
}
_TESTS = [f"tests/{name}" for name in ("unit", "properties", "conformance", "scenarios", "attacks", "faults")]
_NOT_HERE = "not postgres and not e2e and not kubernetes and not nightly"
_NOT_FORKED = ["--ignore-glob=tests/unit/*chart.py"]
"""They load a library of Go, whose threads are missing in a forked copy, and wait there for ever."""
_TIMEOUT_S = 120
_TIERS = ("test", "check")


@dataclass(slots=True)
class Job:
    """A mutation, and the tests to try it with."""

    mutation: Mutation
    tests: list[str]
    running: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 4))
    """The position of the running test, written by the forked copy: known even if that copy is killed."""

    def begin(self, test: str) -> None:
        self.running[:4] = self.tests.index(test).to_bytes(4, "big")

    @property
    def current(self) -> str:
        return self.tests[int.from_bytes(self.running[:4], "big")]


class Mutator:
    """A pytest plugin that replaces the loop over the tests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._reach = Reach(ROOT, [folder for folders in AREAS.values() for folder in folders])
        self._failed = ""
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self.rows: list[dict[str, Any]] = json.loads(options.out.read_text()) if options.resume else []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()
        for found in gc.get_objects():
            if type(found) is FunctionType and found.__code__.co_filename.startswith(str(ROOT)):
                code = found.__code__
                self._functions.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(found)
        gc.freeze()
        checked = items_of_check(session.items)
        items = [item for item in session.items if item.nodeid in checked or not self._options.check]
        self._items = {item.nodeid: item for item in items}
        print(f"{len(items)} tests; recording what they execute ...", flush=True)
        self._reach.record(items, self._run, lambda item: _TIERS[item.nodeid in checked], self._options.workers)
        self._mutate()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = report.nodeid

    def _run(self, tests: list[pytest.Item], before: Callable[[pytest.Item], Any], *, first: bool = False) -> Any:
        """Run tests; return the CPU seconds of each, and whether it failed. End at the `first` failure if it is set."""
        results = {}
        for test, following in zip(tests, [*tests[1:], None], strict=True):
            before(test)
            self._failed, started_s = "", time.process_time()
            test.ihook.pytest_runtest_protocol(item=test, nextitem=following)
            results[test.nodeid] = round(time.process_time() - started_s, 3), bool(self._failed)
            if self._failed and first:
                break
        return results

    def _mutate(self) -> None:
        known = {(row["key"], row["line"], row["start"]) for row in self.rows}
        waiting = [m for m in _sample(self._options) if (m.key, m.line, m.start) not in known]
        limits = {"workers": self._options.workers, "cpu_s": 2 * self._options.budget + 10, "wall_s": 1_800}
        while waiting:
            jobs = [
                Job(mutation, self._reach.tests_of(mutation, self._options.budget, self._items)) for mutation in waiting
            ]
            waiting = []
            for job, answer in run_forked(jobs, self._try, **limits):
                failed = job.current if answer is None else answer
                if failed and not self._passes_without(failed):
                    self._reach.forget(failed)
                    waiting.append(job.mutation)
                else:
                    self._report(job, failed)

    def _passes_without(self, test: str) -> bool:
        """Return whether a test that failed with a mutation passes without it: else it fails by chance or from load."""
        limits = {"workers": 1, "cpu_s": 2 * self._options.budget + 10, "wall_s": 1_800}
        jobs = run_forked([self._items[test]], lambda item: self._run([item], lambda _: None), **limits)
        return all(results is not None and not results[test][1] for _, results in jobs)

    def _try(self, job: Job) -> str:
        """Return the first test that fails with the mutation, "" if all pass."""
        mutation = job.mutation
        items = [self._items[name] for name in job.tests]
        path = ROOT / mutation.path
        source = mutation.apply(path.read_bytes())
        if not items:
            return ""
        if not self._exchange(mutation, compile(source, str(path), "exec")):
            return _try_in_new_process(path, source, [item.nodeid for item in items])
        results = self._run(items, lambda test: job.begin(test.nodeid), first=True)
        return next((name for name, (_, is_failed) in results.items() if is_failed), "")

    def _exchange(self, mutation: Mutation, module: CodeType) -> bool:
        place = mutation.place
        code = _find(module, place.function, place.first_line)
        functions = self._functions.get((module.co_filename, place.function, place.first_line), [])
        if code is None or not functions or any(f.__code__.co_freevars != code.co_freevars for f in functions):
            return False
        for function in functions:
            function.__code__ = code
        return True

    def _report(self, job: Job, failed: str) -> None:
        mutation = job.mutation
        tier = self._reach.tests[failed][1] if failed else ""
        print(f"{tier or 'SURVIVED':9} {mutation.path}:{mutation.line} {mutation.kind} {failed}", flush=True)
        if not failed:
            print(
                f"          - {mutation.before}\n          + {mutation.after}    ({len(job.tests)} tests)", flush=True
            )
        self.rows.append(
            {
                "file": mutation.path,
                "line": mutation.line,
                "start": mutation.start,
                "kind": mutation.kind,
                "key": mutation.key,
                "caught": tier,
                "by": failed,
                "tests": len(job.tests),
            }
        )
        self._options.out.write_text(json.dumps(self.rows, indent=1))


def _find(code: CodeType, name: str, first_line: int) -> CodeType | None:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if (inner.co_qualname, inner.co_firstlineno) == (name, first_line):
                return inner
            if name.startswith(f"{inner.co_qualname}.") and (found := _find(inner, name, first_line)):
                return found
    return None


def _try_in_new_process(path: Path, source: bytes, tests: list[str]) -> str:
    folder = ROOT / ".mutation"
    mutated, chosen = folder / f"mutated{os.getpid()}.py", folder / f"tests{os.getpid()}"
    mutated.write_bytes(source)
    chosen.write_text("\n".join(tests))
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-p", "tests.mutation.substitute", "-p", "no:cacheprovider"]
    command += ["-rf", "-m", _NOT_HERE, f"--timeout={_TIMEOUT_S}", f"@{chosen}"]
    environment = {**os.environ, "MUTATED_PATH": str(path), "MUTATED_SOURCE": str(mutated)}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    finally:
        mutated.unlink()
        chosen.unlink()
    named = [name for name in tests if f"FAILED {name} " in f"{done.stdout} ".replace("\n", " ")]
    return "" if done.returncode == 0 else (named or tests)[0]


def _sample(options: argparse.Namespace) -> list[Mutation]:
    """Choose by the hash of each edit, so that a change of the code changes the sample only where it changes the code."""
    equivalent = set((Path(__file__).parent / "equivalent.txt").read_text().splitlines())
    paths = sorted(path for folders in AREAS.values() for folder in folders for path in (ROOT / folder).rglob("*.py"))
    found = [mutation for path in paths for mutation in mutations_of(path, str(path.relative_to(ROOT)))]
    found = [mutation for mutation in found if mutation.key not in equivalent]
    if options.again is None:
        found = chosen_of(found, options.sample, options.seed)
    else:
        survived = {row["key"] for row in json.loads(options.again.read_text()) if not row["caught"]}
        # Edits of one function can share a key, such as two numbers that are the same.
        found = [mutation for mutation in found if mutation.key in survived]
    folders = AREAS.get(options.area, [""])
    return [m for m in found if m.path.startswith(tuple(folders)) and options.only in m.path]


def chosen_of(mutations: list[Mutation], count: int, seed: int) -> list[Mutation]:
    """Return the mutations with the lowest hashes. Edits of one function that share a key are numbered."""
    seen, ranks = Counter[str](), dict[str, Mutation]()
    for mutation in mutations:
        seen[mutation.key] += 1
        ranks[hashlib.sha256(f"{seed} {mutation.key} {seen[mutation.key]}".encode()).hexdigest()] = mutation
    return [ranks[rank] for rank in sorted(ranks)[:count]]


def _table(rows: Iterable[dict[str, Any]]) -> str:
    lines = [f"{'area':14}{'mutations':>10}{'check':>8}{'test':>8}{'survived':>10}"]
    for area, folders in {**AREAS, "all": [""]}.items():
        found = [row for row in rows if row["file"].startswith(tuple(folders))]
        check, both = sum(row["caught"] == "check" for row in found), sum(bool(row["caught"]) for row in found)
        lines.append(f"{area:14}{len(found):>10}{check:>8}{both:>8}{len(found) - both:>10}")
    return "\n".join(lines)


def main() -> int:
    """Run the sample; print the survivors and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="number of mutations")
    parser.add_argument("--seed", type=int, default=1, help="chooses the mutations")
    parser.add_argument("--budget", type=float, default=60.0, help="CPU seconds of tests per mutation")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--area", default="", choices=["", *AREAS], help="only the part of the sample in this area")
    parser.add_argument("--only", default="", help="only the part of the sample whose paths contain this")
    parser.add_argument("--check", action="store_true", help="try only the tests of `make check`")
    parser.add_argument("--resume", action="store_true", help="continue the interrupted run that has written --out")
    parser.add_argument("--again", type=Path, help="instead of a sample, what survived in this earlier report")
    parser.add_argument("--out", type=Path, default=ROOT / ".mutation/report.json", help="the JSON report")
    parser.add_argument("tests", nargs="*", default=_TESTS, help="folders of tests")
    options = parser.parse_args()
    mutator = Mutator(options)
    flags = ["-p", "no:cacheprovider", "-m", _NOT_HERE, f"--timeout={_TIMEOUT_S}", "--capture=no"]
    pytest.main([*flags, *_NOT_FORKED, *options.tests], plugins=[mutator])
    print(_table(mutator.rows))
    return 0 if mutator.rows else 1


if __name__ == "__main__":
    sys.exit(main())
