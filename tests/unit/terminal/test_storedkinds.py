"""Commands patch objects of users in the version that the host stores, as far as they may read definitions."""

from typing import Any

import pytest

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import ApiError, Forbidden, NotFound
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.client.client import Request
from federation.terminal.storedkinds import StoredKinds

WIDGETS = Resource("example.com", "v1beta1", "Widget", "widgets")
DEFINITION: Object = {
    "spec": {"versions": [{"name": name, "served": True, "storage": name == "v1"} for name in ("v1beta1", "v1")]}
}


class Host:
    """A server that answers requests for definitions, and counts them."""

    def __init__(self, answer: Object | ApiError) -> None:
        self.asked: list[str] = []
        self._answer = answer

    async def request(self, request: Request) -> Object:
        self.asked.append(request.name)
        if isinstance(self._answer, ApiError):
            raise self._answer
        return self._answer

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not needed")


async def test_the_definition_is_read_once_and_names_the_stored_version() -> None:
    host = Host(DEFINITION)
    kinds = StoredKinds(host)
    for version in ("v1beta1", "v1"):
        assert await kinds.stored_in(WIDGETS._replace(version=version)) == WIDGETS._replace(version="v1")
    assert host.asked == ["widgets.example.com"]


@pytest.mark.parametrize("error", [NotFound("no definition"), Forbidden("no right")], ids=["absent", "forbidden"])
async def test_without_a_definition_the_version_stays(error: ApiError) -> None:
    assert await StoredKinds(Host(error)).stored_in(WIDGETS) == WIDGETS


async def test_built_in_kinds_and_our_own_are_not_looked_up() -> None:
    host = Host(DEFINITION)
    for resource in (DEPLOYMENTS, FEDERATED_CLUSTERS):
        assert await StoredKinds(host).stored_in(resource) == resource
    assert host.asked == []
