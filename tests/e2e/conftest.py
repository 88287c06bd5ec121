"""One real HTTPS server per worker, for the modules that use kubectl or another client.

A test has a namespace of its own and removes its cluster-scoped objects, or names them after the namespace. A module that
changes the server itself starts its own.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest

from federation.client.kubeconfig import load_kubeconfig
from tests.support.apiserver import Parts, api_server
from tests.support.kubectl import Kubectl
from tests.support.postgres import PostgresServer
from tests.support.rest import Api


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    """The server of this worker."""
    with api_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def administrator(parts: Parts) -> Iterator[Api]:
    """One pool of connections to the server."""
    with closing(Api(load_kubeconfig(parts.kubeconfig))) as api:
        yield api


@pytest.fixture
def kubectl(parts: Parts, administrator: Api, request: pytest.FixtureRequest) -> Kubectl:
    """Real kubectl, in a namespace of the test's own."""
    return Kubectl.in_namespace_of(request.node.name, parts, administrator)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One PostgreSQL per worker; a test has a database of its own, and leaves the server as it found it."""
    with PostgresServer() as server:
        yield server
