"""The server of the suite: ours in memory, on SQLite and on PostgreSQL, or with `--kubeconfig FILE` any other cluster.

    pytest tests/conformance/apiserver                          our server in memory; tests of `every_store` on all three
    pytest tests/conformance/apiserver --tier all               every test on every store
    pytest tests/conformance/apiserver --tier all -k sqlite     every test on SQLite
    pytest tests/conformance/apiserver --kubeconfig ~/.kube/config    the current context's cluster

Every test has a namespace of its own, which is deleted after it.
"""

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conformance.apiserver.objects import a_definition
from tests.support.apiserver import api_server
from tests.support.postgres import PostgresServer
from tests.support.rest import Api, Object, Refused, eventually
from tests.support.stores import stores_for

from federation.apimachinery.connection import Connection
from federation.apiserver.store.interface import Store
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sql import SQLStore
from federation.apiserver.verbs.requestoptions import RegistryOptions
from federation.client.kubeconfig import load_kubeconfig

DATABASES = ("sqlite", "postgres")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kubeconfig", default="", help="run the API server suite against this cluster")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "connection" in metafunc.fixturenames:
        given = metafunc.config.getoption("--kubeconfig", default="")
        stores = [pytest.param(f"kubeconfig {given}", id="cluster")] if given else stores_for(metafunc, *DATABASES)
        metafunc.parametrize("connection", stores, indirect=True, scope="session")


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("ours")
    if marker is not None and item.config.getoption("--kubeconfig", default=""):
        pytest.skip(marker.args[0])


@pytest.fixture(scope="session")
def connection(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """The administrator's way to the server."""
    kind, _, file = request.param.partition(" ")
    if kind == "kubeconfig":
        yield load_kubeconfig(Path(file))
        return
    folder = tmp_path_factory.mktemp(kind)
    with contextlib.ExitStack() as stack:
        url = f"sqlite:///{folder}/state.db"
        if kind == "postgres":
            url = stack.enter_context(PostgresServer()).create_database()
        options = StoreOptions(tail_interval_s=0.2, progress_interval_s=0.1)

        def store() -> Store:
            return MemoryStore(options) if kind == "memory" else SQLStore(url, options)

        quick = RegistryOptions(bookmark_interval_s=0.1, gc_interval_s=1)
        parts = stack.enter_context(api_server(folder, store=store, registry_options=quick))
        yield load_kubeconfig(parts.kubeconfig)


@pytest.fixture(scope="session")
def admin(connection: Connection) -> Iterator[Api]:
    """One pool of connections for all tests on a server."""
    api = Api(connection)
    yield api
    api.close()


@pytest.fixture
def api(admin: Api) -> Iterator[Api]:
    """The administrator in a new namespace."""
    namespace = f"conformance-{uuid.uuid4().hex[:10]}"
    admin.namespace = namespace
    admin.create("namespaces", {"metadata": {"name": namespace}})
    yield admin
    admin.delete("namespaces", namespace)


@pytest.fixture
def group(api: Api) -> str:
    """An API group of this test's own."""
    return f"{api.namespace}.example.com"


@pytest.fixture
def widgets(api: Api, group: str) -> Iterator[str]:
    """A served custom resource with both subresources: what `api` calls it."""
    subresources: Object = {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    ]
    definition = a_definition(group, subresources=subresources, additionalPrinterColumns=columns)
    yield define(api, definition)
    api.delete("customresourcedefinitions", f"widgets.{group}")


def define(api: Api, definition: Object) -> str:
    """Create a definition, wait until it is served and return what `api` calls its resource."""
    spec = api.create("customresourcedefinitions", definition)["spec"]
    resource = f"{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"

    def is_served() -> bool:
        with contextlib.suppress(Refused):
            api.list(resource, namespace="" if spec["scope"] == "Cluster" else None)
            return True
        return False

    eventually(is_served)
    return resource


@pytest.fixture
def nobody(api: Api, connection: Connection) -> Iterator[Api]:
    """The same namespace as the service account `nobody`, which has only the permissions of every user."""
    api.create("serviceaccounts", {"metadata": {"name": "nobody"}})
    token = api.create("serviceaccounts", {"spec": {}}, name="nobody", subresource="token")["status"]["token"]
    bare = replace(connection, client_cert_data=b"", client_key_data=b"", token=token)
    somebody = Api(bare, api.namespace)
    yield somebody
    somebody.close()
