"""The end of a run: how to repeat a failed test alone, cases of batches, costs by folder, dear tests without a reason.

Costs go to pytest's cache, from where `python -m tests.support.suite.summary` (`make record-costs`) takes them into
`tests/costs.json`. It refuses when a dear test has no marker that says why.
"""

import json
import shlex
import sys
from dataclasses import astuple
from pathlib import Path
from typing import cast

import pytest

from tests.support.suite.costs import RECORD, REMEDY, ROOT, SLOW_S, Cost, by_folder, save, unexplained
from tests.support.vectors import EXECUTED

WHOLE = 4_000
"""A run of so many tests is one of the whole suite. Its costs are printed by folder and replace the record."""
_NAMED_MAX = 20
_CACHED = "federation/costs"


class Summary:
    """A plugin of the process that reports: the only one, or the controller of pytest-xdist's workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._costs: dict[str, Cost] = {}
        self._failed: dict[str, None] = {}
        self._cases: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the cost of a test, the number of its cases, and that it failed."""
        if report.failed:
            self._failed[report.nodeid] = None
        for key, value in report.user_properties:
            if key == EXECUTED:
                self._cases[report.nodeid] = cast("int", value)
            if key == "cost":
                name, *cost = cast("tuple[str, float, float, bool, bool]", value)
                self._costs[name] = Cost(*cost)
                if report.nodeid in self._failed:
                    del self._failed[report.nodeid]
                    self._failed[name] = None  # without the group that pytest-xdist appends

    def pytest_sessionfinish(self) -> None:
        """Leave the costs where `make record-costs` finds them."""
        if self._costs and (cache := getattr(self._config, "cache", None)) is not None:
            costs = {name: astuple(cost) for name, cost in self._costs.items()}
            cache.set(_CACHED, costs)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the commands and the table."""
        if self._failed:
            terminalreporter.section("repeat a failed test alone")
            for name in list(self._failed)[:_NAMED_MAX]:
                terminalreporter.line(f".venv/bin/python -m pytest {shlex.quote(name)}")
        if self._cases:
            terminalreporter.line(f"{sum(self._cases.values())} {EXECUTED} in {len(self._cases)} tests of vectors")
        if len(self._costs) >= WHOLE:
            terminalreporter.section("CPU seconds, processes of tests included")
            for folder, (count, cpu_s) in sorted(by_folder(self._costs).items(), key=lambda entry: -entry[1][1]):
                terminalreporter.line(f"{folder:14}{count:7} tests {cpu_s:8.0f} s")
            total = sum(cost.cpu_s for cost in self._costs.values())
            terminalreporter.line(f"{'all':14}{len(self._costs):7} tests {total:8.0f} s")
        if silent := unexplained(self._costs):
            terminalreporter.section(f"more than {SLOW_S:g} CPU seconds without a reason")
            for name in silent[:_NAMED_MAX]:
                terminalreporter.line(f"{self._costs[name].cpu_s:6.1f} s {name}")
            terminalreporter.line(f"`make record-costs` refuses them: {REMEDY}")


def main(cached: Path = ROOT / ".pytest_cache" / "v" / _CACHED, record: Path = RECORD) -> int:
    """Record the costs of the last run; return the exit code."""
    if not cached.exists():
        print("no costs: run `make test` first", file=sys.stderr)
        return 1
    costs = {name: Cost(*value) for name, value in json.loads(cached.read_text()).items()}
    if silent := unexplained(costs):
        for name in silent:
            print(f"{costs[name].cpu_s:6.1f} CPU seconds: {name}", file=sys.stderr)
        print(f"nothing is recorded: {REMEDY}, and run them again", file=sys.stderr)
        return 1
    save(costs, is_whole=len(costs) >= WHOLE, path=record)
    print(f"tests/costs.json: {len(costs)} tests, {sum(cost.cpu_s for cost in costs.values()):.0f} CPU seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
