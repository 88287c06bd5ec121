"""Real Kubernetes for the suite: `make kubernetes` builds it, `make test-kubernetes` runs the suite."""

import pytest
from tests.kubernetes.build import E2E, missing_binaries


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker("kubernetes")


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    if missing := [name for name in missing_binaries() if name != E2E]:
        pytest.exit(f"{', '.join(missing)} not built: run `make kubernetes`", returncode=2)
