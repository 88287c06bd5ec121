"""Real Kubernetes for the suite: `make kubernetes` builds it, `make test-kubernetes` runs the suite."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.kubernetes.build import E2E, missing_binaries
from tests.kubernetes.cluster import Server, controllers_on, real_cluster
from tests.support.federation import start_serve


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker("kubernetes")


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    if missing := [name for name in missing_binaries() if name != E2E]:
        pytest.exit(f"{', '.join(missing)} not built: run `make kubernetes`", returncode=2)


@pytest.fixture(scope="session", params=["real", "ours"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An API server, the real one and ours in turn, with Kubernetes' controllers, its scheduler and two nodes."""
    folder = tmp_path_factory.mktemp(request.param)
    with ExitStack() as stack:
        if request.param == "real":
            yield stack.enter_context(real_cluster(folder / "cluster"))
            return
        running = start_serve(folder / "host")
        stack.callback(running.close)
        stack.enter_context(controllers_on(folder / "controllers", running.kubectl.kubeconfig))
        yield Server(running.kubectl.kubeconfig)
