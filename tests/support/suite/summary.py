"""The end of a run: how to repeat each failed test alone, the executed cases of batches, and what the run cost by folder.

Costs go to pytest's cache, from where `python -m tests.support.suite.summary` (`make record-costs`) takes them into
`tests/costs.json`.
"""

import json
import shlex
import sys
from typing import cast

import pytest

from tests.support.suite.costs import ROOT, Cost, by_folder, save
from tests.support.vectors import EXECUTED

WHOLE = 4_000
"""A run of so many tests is one of the whole suite. Its costs are printed by folder and replace the record."""
_REPEATED_MAX = 20
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
                name, cpu_s, wall_s, is_checked = cast("tuple[str, float, float, bool]", value)
                self._costs[name] = Cost(cpu_s, wall_s, is_checked)
                if report.nodeid in self._failed:
                    del self._failed[report.nodeid]
                    self._failed[name] = None  # without the group that pytest-xdist appends

    def pytest_sessionfinish(self) -> None:
        """Leave the costs where `make record-costs` finds them."""
        if self._costs and (cache := getattr(self._config, "cache", None)) is not None:
            costs = {name: [cost.cpu_s, cost.wall_s, cost.is_checked] for name, cost in self._costs.items()}
            cache.set(_CACHED, costs)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the commands and the table."""
        if self._failed:
            terminalreporter.section("repeat a failed test alone")
            for name in list(self._failed)[:_REPEATED_MAX]:
                terminalreporter.line(f".venv/bin/python -m pytest {shlex.quote(name)}")
        if self._cases:
            terminalreporter.line(f"{sum(self._cases.values())} {EXECUTED} in {len(self._cases)} tests of vectors")
        if len(self._costs) >= WHOLE:
            terminalreporter.section("CPU seconds, processes of tests included")
            for folder, (count, cpu_s) in sorted(by_folder(self._costs).items(), key=lambda entry: -entry[1][1]):
                terminalreporter.line(f"{folder:14}{count:7} tests {cpu_s:8.0f} s")
            total = sum(cost.cpu_s for cost in self._costs.values())
            terminalreporter.line(f"{'all':14}{len(self._costs):7} tests {total:8.0f} s")


def main() -> int:
    """Record the costs of the last run; return the exit code."""
    cached = ROOT / ".pytest_cache" / "v" / _CACHED
    if not cached.exists():
        print("no costs: run `make test` first", file=sys.stderr)
        return 1
    costs = {name: Cost(*value) for name, value in json.loads(cached.read_text()).items()}
    save(costs, is_whole=len(costs) >= WHOLE)
    print(f"tests/costs.json: {len(costs)} tests, {sum(cost.cpu_s for cost in costs.values()):.0f} CPU seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
