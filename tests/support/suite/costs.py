"""What each test costs: CPU seconds of the test process and of all processes that it started, and wall time.

`Meter` reads the operating system's counters around a test. A run leaves its costs in pytest's cache;
`make record-costs` turns them into `tests/costs.json`, which is committed. That record orders the tests of a run, and
`tests/architecture/test_budgets.py` compares it with the budgets of the tiers.

Costs of a fixture count for the test that needed it first, those of a server in the background for the tests that run
meanwhile.
"""

import json
import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "tests" / "costs.json"
SLOW_S = 2.0
"""CPU seconds from which a test needs the marker `slow` and a reason."""
NOISE = 1.5
"""A run may measure so much more: the first test of a worker prepares what the others share, and load costs CPU time."""
REMEDY = "make them cheaper, or mark them with @pytest.mark.slow('reason') or nightly"
_LISTED_S = 0.5
_ASKED_AFTER_S = 0.05
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU and wall time of one test, whether `make check` runs it, and whether a marker says why it may be dear."""

    cpu_s: float
    wall_s: float
    is_checked: bool = False
    has_reason: bool = False


class Meter:
    """Measures from its construction on."""

    def __init__(self) -> None:
        self._cpu_s = _COUNTER.read_s()
        self._began = time.perf_counter()

    def read(self, *, is_checked: bool, has_reason: bool = False) -> Cost:
        """Return what was used since."""
        return Cost(
            max(0.0, _COUNTER.read_s() - self._cpu_s), time.perf_counter() - self._began, is_checked, has_reason
        )


class _Counter:
    """The CPU seconds of this process and its descendants, those that run and those that ended.

    The operating system is asked for running descendants only after a while, or when one has ended: with a federation in
    the background that takes half a millisecond, as long as many a test. What they used meanwhile is in the next answer.
    """

    def __init__(self) -> None:
        self._running_s = 0.0
        self._ended_s = -1.0
        self._asked = 0.0

    def read_s(self) -> float:
        """Return what was used since the process began."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended_s, now = ended.ru_utime + ended.ru_stime, time.perf_counter()
        if ended_s != self._ended_s or now - self._asked > _ASKED_AFTER_S:
            self._ended_s, self._asked = ended_s, now
            self._running_s = _running_children_s("self")
        return own.ru_utime + own.ru_stime + ended_s + self._running_s


_COUNTER = _Counter()


def _running_children_s(pid: str) -> float:
    """Return the CPU seconds of running descendants; 0 where there is no `/proc`."""
    total = 0.0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            children = (task / "children").read_bytes().split()
            total += sum(_process_s(child.decode()) for child in children)
    except OSError:  # the process or thread has ended, or the system has no such files
        pass
    return total


def _process_s(pid: str) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS_PER_S + _running_children_s(pid)


@dataclass(frozen=True)
class Record:
    """The committed costs: per module, and per test for the dear ones, as CPU and wall time."""

    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tests: Mapping[str, list[float]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path = RECORD) -> Self:
        """Read the committed record; an empty one where it is missing."""
        if not path.exists():
            return cls()
        found = json.loads(path.read_text())
        return cls(found["files"], found["tests"])

    def cost_of(self, test: str) -> Cost:
        """Return the cost of a test, or the mean of its module's cheap tests."""
        if listed := self.tests.get(test):
            return Cost(*listed)
        return self._cheap.get(test.partition("::")[0], Cost(0.0, 0.0))

    def cpu_s(self, file: str) -> float:
        """Return the CPU seconds of a module; 0 for one that was not recorded."""
        return float(self.files.get(file, {}).get("cpu_s", 0.0))

    @cached_property
    def _cheap(self) -> dict[str, Cost]:
        listed: dict[str, list[Cost]] = defaultdict(list)
        for test, cost in self.tests.items():
            listed[test.partition("::")[0]].append(Cost(*cost))
        return {file: _mean_of_others(found, listed[file]) for file, found in self.files.items()}

    def total_cpu_s(self, *, check_only: bool = False) -> float:
        """Return the CPU seconds of all recorded tests, or of those that `make check` runs."""
        return sum(float(found["check_cpu_s" if check_only else "cpu_s"]) for found in self.files.values())


def _mean_of_others(module: Mapping[str, Any], listed: Sequence[Cost]) -> Cost:
    """Return the mean of the tests of a module that are not listed."""
    count = max(1, module["tests"] - len(listed))
    cpu_s = module["cpu_s"] - sum(cost.cpu_s for cost in listed)
    wall_s = module["wall_s"] - sum(cost.wall_s for cost in listed)
    return Cost(max(0.0, cpu_s) / count, max(0.0, wall_s) / count)


def unexplained(costs: Mapping[str, Cost]) -> list[str]:
    """Return the tests that clearly use more than `SLOW_S` and have no marker that says why, the dearest first."""
    found = [name for name, cost in costs.items() if cost.cpu_s > SLOW_S * NOISE and not cost.has_reason]
    return sorted(found, key=lambda name: -costs[name].cpu_s)


def by_folder(costs: Mapping[str, Cost]) -> dict[str, tuple[int, float]]:
    """Return number of tests and CPU seconds by folder of `tests`."""
    folders: dict[str, tuple[int, float]] = {}
    for test, cost in costs.items():
        name = test.split("/")[1]
        count, cpu_s = folders.get(name, (0, 0.0))
        folders[name] = (count + 1, cpu_s + cost.cpu_s)
    return folders


def save(costs: Mapping[str, Cost], *, is_whole: bool, path: Path = RECORD) -> None:
    """Write the record of a run. One of a part of the suite replaces the modules that it ran whole, and single tests."""
    old = Record() if is_whole else Record.load(path)
    ran = _by_module(costs)
    whole = {name for name, listed in ran.items() if len(listed) >= old.files.get(name, {}).get("tests", 0)}
    files = {name: found for name, found in old.files.items() if name not in whole and (ROOT / name).exists()}
    files |= {name: _of_module(ran[name]) for name in whole}
    tests = {
        name: cost
        for name, cost in old.tests.items()
        if name not in costs and name.partition("::")[0] in files.keys() - whole
    }
    tests |= {
        n: [round(c.cpu_s, 1), round(c.wall_s, 1)] for n, c in costs.items() if max(c.cpu_s, c.wall_s) > _LISTED_S
    }
    record: dict[str, dict[str, Any]] = {"files": dict(sorted(files.items())), "tests": dict(sorted(tests.items()))}
    path.write_text(_compact(record))


def _by_module(costs: Mapping[str, Cost]) -> dict[str, list[Cost]]:
    modules: dict[str, list[Cost]] = defaultdict(list)
    for test, cost in costs.items():
        modules[test.partition("::")[0]].append(cost)
    return modules


def _of_module(costs: Iterable[Cost]) -> dict[str, float]:
    listed = list(costs)
    return {
        "tests": len(listed),
        "cpu_s": round(sum(cost.cpu_s for cost in listed), 2),
        "wall_s": round(sum(cost.wall_s for cost in listed), 2),
        "check_cpu_s": round(sum(cost.cpu_s for cost in listed if cost.is_checked), 2),
    }


def _compact(record: Mapping[str, Mapping[str, Any]]) -> str:
    """One line per module and test, so that a change of the record can be read."""
    parts: list[str] = []
    for name, entries in record.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in entries.items())
        parts.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
