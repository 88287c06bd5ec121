"""Which tests a tier runs, and in which order.

`pytest --tier check|test|all`; without the option it is `test`. docs/testing.md explains the tiers. A test that is named
by its node ID runs in every tier. Tests that need a real Kubernetes belong to none of them: `make test-kubernetes` runs
those.

Decision: docs/decisions/0085-tests-have-a-budget.md
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import pytest

from tests.support.suite.costs import Record

LONG_S = 3.0
"""Groups and tests that take longer are distributed first, the longest of them at the very start."""
_BUSY = 0.5
"""What uses less CPU time than this share of its wall time mostly waits."""


class Tier(StrEnum):
    CHECK = "check"
    TEST = "test"
    ALL = "all"


_CHECK_FOLDERS = ("tests/unit/", "tests/properties/", "tests/architecture/", "tests/conformance/", "tests/scenarios/")
_LEFT_OUT_OF_CHECK = ("slow", "e2e", "postgres", "real_time", "nightly", "kubernetes")


def name_of(item: pytest.Item) -> str:
    """Return the node ID without the group that pytest-xdist appends to it."""
    group = item.get_closest_marker("xdist_group")
    return item.nodeid.removesuffix(f"@{_group_of(group)}") if group else item.nodeid


def items_of_check(items: Iterable[pytest.Item]) -> set[str]:
    """Return the names of the fast tests. Of each module of scenarios it is the first one, which stands for its feature."""
    chosen = set()
    seen_modules = set()
    for item in items:
        path = item.nodeid.partition("::")[0]
        if not path.startswith(_CHECK_FOLDERS) or any(item.get_closest_marker(name) for name in _LEFT_OUT_OF_CHECK):
            continue
        if path.startswith("tests/scenarios/"):
            if path in seen_modules:
                continue
            seen_modules.add(path)
        chosen.add(name_of(item))
    return chosen


def has_reason(item: pytest.Item) -> bool:
    """Return whether a marker says why the test may use more than two CPU seconds."""
    slow = item.get_closest_marker("slow")
    return (slow is not None and bool(slow.args)) or item.get_closest_marker("nightly") is not None


def is_named(config: pytest.Config) -> bool:
    """Return whether the command names tests by their node IDs, which run in every tier."""
    return any("::" in argument for argument in config.args)


def collects_nightly(config: pytest.Config) -> bool:
    """Return whether nightly tests can run: if not, a matrix need not be collected."""
    return Tier(config.getoption("--tier")) is Tier.ALL or is_named(config)


def is_in(item: pytest.Item, tier: Tier, checked: set[str]) -> bool:
    """Return whether a tier runs a test; `checked` are the names of the fast tests."""
    match tier:
        case Tier.CHECK:
            return name_of(item) in checked
        case Tier.TEST:
            return item.get_closest_marker("nightly") is None
        case Tier.ALL:
            return True


def longest_first(items: Sequence[pytest.Item], record: Record) -> list[pytest.Item]:
    """Return the items with long groups and long tests first, so that the last worker ends with the others.

    Long ones that mostly wait alternate with the others by wall time: workers that all wait leave the processor idle.
    """
    units: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        group = item.get_closest_marker("xdist_group")
        units[f"group {_group_of(group)}" if group else item.nodeid].append(item)
    costs = {name: [record.cost_of(name_of(item)) for item in unit] for name, unit in units.items()}
    walls = {name: sum(cost.wall_s for cost in found) for name, found in costs.items()}
    # A stable sort: short tests stay beside those of their module, whose fixtures they share.
    ordered = sorted(units, key=lambda name: -walls[name] if walls[name] > LONG_S else 0.0)
    waiting = {
        name: None
        for name in ordered
        if walls[name] > LONG_S and sum(cost.cpu_s for cost in costs[name]) < walls[name] * _BUSY
    }
    busy = [name for name in ordered if name not in waiting]
    return [item for name in _alternating(waiting, busy, walls) for item in units[name]]


def _alternating(first: Iterable[str], second: Iterable[str], walls: Mapping[str, float]) -> Iterator[str]:
    """Yield the names of both so that those of each have taken about as long at every time."""
    lists = [deque(first), deque(second)]
    taken_s = [0.0, 0.0]
    while any(lists):
        left = [index for index, names in enumerate(lists) if names]
        index = min(left, key=lambda each: taken_s[each])
        name = lists[index].popleft()
        taken_s[index] += walls[name]
        yield name


def _group_of(group: pytest.Mark) -> object:
    return group.kwargs.get("name", group.args[0] if group.args else "default")
