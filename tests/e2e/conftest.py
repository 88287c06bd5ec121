"""A real HTTPS server per module, for modules that use kubectl or another client."""

from collections.abc import Iterator

import pytest

from tests.support.apiserver import Parts, api_server
from tests.support.kubectl import Kubectl


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    """The server, gone at the end of the module."""
    with api_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def kubectl(parts: Parts, request: pytest.FixtureRequest) -> Kubectl:
    """Real kubectl, in a namespace of the test's own."""
    return Kubectl.in_namespace_of(request.node.name, parts, parts.kubeconfig.parent)
