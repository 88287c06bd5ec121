"""Attack: a user of a namespace copies the fleet of everybody with `fedctl twin`."""

from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from tests.support.tenants import ROLES, tenants

from federation.api import names
from federation.apimachinery.errors import ConfigurationError, from_status
from federation.apimachinery.resources import Object
from federation.client.client import Client, Request
from federation.twin.fleetcopy import from_host

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Lists:
    """A transport of lists over a client of the host's API."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def request(self, request: Request) -> Object:
        assert request.verb == "list"
        answer = await self._client.get(request.resource.path(request.namespace), params={"limit": request.limit})
        found: Object = answer.json()
        if answer.status_code != 200:
            raise from_status(found, answer.status_code)
        return found


@pytest.mark.parametrize("user", ROLES)
async def test_only_an_administrator_of_all_namespaces_gets_a_twin(user: str, tmp_path: Path) -> None:
    async with tenants(tmp_path) as host:
        with pytest.raises(ConfigurationError, match=r"needs the right to list \S+ in all namespaces"):
            await from_host(Client(Lists(await host.client(user))), NOW, ())  # type: ignore[arg-type]  # only lists
        fleet = await from_host(Client(Lists(await host.root())), NOW, ())  # type: ignore[arg-type]  # only lists
        assert any(key.startswith("/core/namespaces/") for key in fleet.objects)
        assert not any(f"/secrets/{names.SYSTEM_NAMESPACE}/" in key for key in fleet.objects)
