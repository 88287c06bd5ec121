"""Secrets of one-time links of earlier versions are removed, and no others."""

import pytest
from structlog.testing import capture_logs
from tests.unit.controllers.hosting import a_host

from federation.api import names
from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import NAMESPACES, SECRETS, Object
from federation.client.local import LocalClient
from federation.web.ui.storedlinks import remove_stored_links


def a_secret(name: str, namespace: str = names.SYSTEM_NAMESPACE, **labels: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "stringData": {"session": "x"}}


async def test_links_are_removed_and_other_secrets_stay() -> None:
    label = {names.LOGIN_LINK_LABEL: "true"}
    async with a_host() as host:
        await host.user.create(NAMESPACES, {"metadata": {"name": "other"}})
        for secret in (
            a_secret("ui-link-1", **label),
            a_secret("ui-link-2", **label),
            a_secret("ui-link-3"),
            a_secret("keys", **label),
            a_secret("ui-link-1", "other", **label),
        ):
            await host.user.create(SECRETS, secret)
        await remove_stored_links(host.client)
        left = [
            (each["metadata"]["namespace"], each["metadata"]["name"]) for each in (await host.user.list(SECRETS)).items
        ]
        expected = [(names.SYSTEM_NAMESPACE, "keys"), (names.SYSTEM_NAMESPACE, "ui-link-3"), ("other", "ui-link-1")]
        assert [each for each in left if each[1].startswith(("keys", "ui-link"))] == expected


@pytest.mark.parametrize("failing", ["page", "delete"])
async def test_a_store_that_refuses_does_not_stop_the_start(failing: str) -> None:
    async with a_host() as host:
        await host.user.create(SECRETS, a_secret("ui-link-1", **{names.LOGIN_LINK_LABEL: "true"}))

        class Refusing(LocalClient):
            pass

        async def refuse(*_: object, **__: object) -> None:
            raise ApiError("full", code=503, reason="ServiceUnavailable")

        client = Refusing(host.registry)
        setattr(client, failing, refuse)
        with capture_logs() as logs:
            await remove_stored_links(client)
        assert [entry["reason"] for entry in logs] == ["full"]
