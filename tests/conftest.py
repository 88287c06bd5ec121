"""Settings for all tests: generated examples are the same in every run, so that a red run is about the change in it.

`HYPOTHESIS_PROFILE=search` looks for new examples instead, many more of them.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

from federation.apimachinery.memory import tune_collector

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
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", max_examples=2_000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_collection_finish() -> None:
    """Collect garbage as the product does, and exclude what ten thousand collected tests hold."""
    tune_collector()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse to run groups that would be spread over the workers: each worker would start their servers again."""
    if getattr(config.option, "loadgroup", False):
        apart = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        if apart:
            raise pytest.UsageError(f"pytest-xdist does not keep groups together with this pytest: {apart[0]}")


@pytest.fixture(scope="session")
def shared_federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Federation"]:
    """The federation that the tests of this worker share: see the rules in tests/support/shared.py."""
    from tests.support.shared import shared

    with shared(tmp_path_factory.mktemp("shared") / "fed") as running:
        yield running
