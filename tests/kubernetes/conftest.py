"""Real Kubernetes for the suite: `make kubernetes` builds it, `make test-kubernetes` runs the suite."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest
from tests.kubernetes.build import missing_binaries
from tests.kubernetes.cluster import Server, controllers_on, real_cluster
from tests.kubernetes.differences.session import ensure_namespace
from tests.support.federation import start_serve
from tests.support.rest import Api

from federation.client.kubeconfig import load_kubeconfig

_PLUGINS: Final = "StorageObjectInUseProtection,TaintNodesByCondition"
_ARGUMENTS: Final = (f"--disable-admission-plugins={_PLUGINS}", "--service-cluster-ip-range=10.96.0.0/12")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker("kubernetes")


@pytest.fixture(scope="session", autouse=True)
def _built() -> None:
    if missing := missing_binaries(servers_only=True):
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


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api]]:
    """The administrators of a real API server without controllers, and of ours."""
    folder = tmp_path_factory.mktemp("servers")
    with ExitStack() as stack:
        real = stack.enter_context(real_cluster(folder / "real", controllers=False, arguments=_ARGUMENTS))
        running = start_serve(folder / "host")
        stack.callback(running.close)
        apis = real.api(), Api(load_kubeconfig(running.kubectl.kubeconfig))
        for api in apis:
            stack.callback(api.close)
            ensure_namespace(api)
        yield apis
