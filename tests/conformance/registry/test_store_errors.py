"""A store that fails: every verb answers with the Status that Kubernetes clients retry."""

from collections.abc import Awaitable, Callable

import pytest
from tests.conformance.registry.conftest import Api, a_config_map

from federation.apimachinery.errors import Expired, RevisionCompacted, ServiceUnavailable, StoreUnavailable
from federation.apiserver.registry.storeerrors import to_api_error

_VERBS: dict[str, Callable[[Api], Awaitable[object]]] = {
    "get": lambda api: api.get("configmaps", "cm"),
    "list": lambda api: api.names("configmaps"),
    "create": lambda api: api.create("configmaps", a_config_map("other")),
    "update": lambda api: api.update("configmaps", a_config_map()),
    "patch": lambda api: api.patch("configmaps", "cm", {"data": {"a": "b"}}),
    "delete": lambda api: api.delete("configmaps", "cm"),
    "revision": lambda api: api.registry.revision(),
}


@pytest.mark.every_store
@pytest.mark.parametrize("verb", _VERBS)
async def test_a_verb_on_a_closed_store_is_unavailable(api: Api, verb: str) -> None:
    await api.create("configmaps", a_config_map())
    await api.registry.store.close()
    with pytest.raises(ServiceUnavailable, match="the store does not answer"):
        await _VERBS[verb](api)


@pytest.mark.every_store
@pytest.mark.parametrize("resource_version", ["", "0", "1"])
async def test_a_watch_that_starts_on_a_closed_store_is_unavailable(api: Api, resource_version: str) -> None:
    """Without a resourceVersion the initial list fails, with one the stream of changes."""
    await api.registry.store.close()
    async with api.watching("configmaps", resource_version=resource_version) as watching:
        with pytest.raises(ServiceUnavailable, match="the store does not answer") as raised:
            await watching.next()
    assert raised.value.to_status()["code"] == 503


@pytest.mark.every_store
async def test_a_watch_that_the_store_cancels_just_ends(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    async with api.watching("configmaps") as watching:
        assert await watching.said(1) == [("ADDED", "cm")]
        await api.create("configmaps", a_config_map("other"))
        assert await watching.said(1) == [("ADDED", "other")]
        await api.registry.store.close()
        with pytest.raises(StopAsyncIteration):
            await watching.next()


def test_a_compacted_revision_is_expired() -> None:
    assert isinstance(to_api_error(RevisionCompacted("revision 1 is compacted")), Expired)
    assert isinstance(to_api_error(StoreUnavailable("disk full")), ServiceUnavailable)
