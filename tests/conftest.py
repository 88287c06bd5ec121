"""Settings for all tests: tiers, their order, costs, and generated examples that are the same in every run.

A red run is about the change in it. `HYPOTHESIS_PROFILE=nightly` looks for new examples instead, many more of them.
"""

import dataclasses
import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

from federation.apimachinery.memory import pause_collector, tune_collector
from tests.support.suite import costs
from tests.support.suite.quarantine import quarantined
from tests.support.suite.summary import Summary
from tests.support.suite.tiers import Tier, has_reason, is_in, is_named, items_of_check, longest_first, name_of

if TYPE_CHECKING:
    from tests.support.federation import Federation

# Plain lines without the debug ones: a rendered traceback of local variables takes longer than the test that causes it.
structlog.configure(
    processors=[
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ],
    wrapper_class=structlog.make_filtering_bound_logger("info"),
)
# Without bytecode files each of the hundreds of processes that tests start compiles all modules, for two seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
pause_collector()  # until all tests are collected: it would take a third of that time, and find nothing
_LIMITS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", max_examples=50, derandomize=True, **_LIMITS)
settings.register_profile("nightly", max_examples=20_000, **_LIMITS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

_ID_CHARACTERS_MAX = 60
_GARBAGE, _GARBAGE_MAX = 100_000, 1_000_000
"""Containers that were allocated and not freed when they are collected: at the end of a test, and within one."""
_CHECKED = pytest.StashKey[set[str]]()
_METER = pytest.StashKey[costs.Meter]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=list(Tier), default=Tier.TEST, help="which tests run: docs/testing.md")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary(config))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten the names of cases. Each worker sends all names, and some of the values have megabytes."""
    if isinstance(val, str | bytes) and len(val) > _ID_CHARACTERS_MAX:
        return f"{val[:_ID_CHARACTERS_MAX]!a}..."
    return None


def pytest_collection_finish() -> None:
    """Exclude what ten thousand collected tests hold from collections, and leave these to the ends of tests."""
    tune_collector()
    gc.set_threshold(_GARBAGE_MAX, 1_000, 1_000)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the tier does not run, apply the quarantine, and put long groups first."""
    if getattr(config.option, "loadgroup", False):
        apart = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        if apart:  # each worker would start their servers again
            raise pytest.UsageError(f"pytest-xdist does not keep groups together with this pytest: {apart[0]}")
    config.stash[_CHECKED] = items_of_check(items)
    if not is_named(config):
        tier = Tier(config.getoption("--tier"))
        left_out = [item for item in items if not is_in(item, tier, config.stash[_CHECKED])]
        config.hook.pytest_deselected(items=left_out)
        dropped = set(left_out)
        items[:] = [item for item in items if item not in dropped]
    for entry in quarantined():
        for item in items:
            if name_of(item).startswith(entry.test):
                item.add_marker(pytest.mark.xfail(strict=False, reason=f"in quarantine: {entry.reason}"))
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items, costs.Record.load())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[_METER] = costs.Meter()
    try:
        return (yield)
    finally:
        if gc.get_count()[0] > _GARBAGE:
            # Nearly all of it is free now; collections within tests would look at what tests still use, again and again.
            gc.collect()
            gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.when == "teardown":
        name = name_of(item)
        cost = item.stash[_METER].read(is_checked=name in item.config.stash[_CHECKED], has_reason=has_reason(item))
        report.user_properties.append(("cost", [name, *dataclasses.astuple(cost)]))
    return report


@pytest.fixture(scope="session")
def shared_federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Federation"]:
    """The federation that the tests of this worker share: see the rules in tests/support/shared.py."""
    from tests.support.shared import shared

    with shared(tmp_path_factory.mktemp("shared") / "fed") as running:
        yield running
