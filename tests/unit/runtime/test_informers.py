"""Sharing informers: one per collection, for as long as somebody uses it."""

import pytest

from federation.apimachinery.resources import CONFIGMAPS, SECRETS
from federation.runtime.informers import Informers


@pytest.fixture
def informers(client, clock) -> Informers:
    return Informers(client, clock=clock)


async def test_users_of_one_collection_share_an_informer(informers) -> None:
    one, two = informers.for_resource(CONFIGMAPS), informers.for_resource(CONFIGMAPS)
    assert one is two
    assert informers.for_resource(CONFIGMAPS, namespace="shop") is not one
    assert informers.for_resource(SECRETS) is not one


async def test_informers_start_with_run_and_later_ones_at_once(informers, client, start, settle) -> None:
    first = informers.for_resource(CONFIGMAPS)
    await settle()
    assert client.calls == []
    start(informers.run())
    await first.wait_synced()
    second = informers.for_resource(SECRETS)
    await informers.wait_synced()
    assert second.has_synced


async def test_an_informer_stops_with_its_last_user(informers, client, start, settle) -> None:
    start(informers.run())
    informer = informers.for_resource(CONFIGMAPS)
    informers.for_resource(CONFIGMAPS)
    await informer.wait_synced()
    informers.release(informer)
    assert informers.all() == [informer]
    informers.release(informer)
    await settle()
    assert informers.all() == []
    again = informers.for_resource(CONFIGMAPS)
    assert again is not informer
    await again.wait_synced()


async def test_run_can_be_called_again(informers, start, settle) -> None:
    informer = informers.for_resource(CONFIGMAPS)
    task = start(informers.run())
    await informer.wait_synced()
    task.cancel()
    await settle()
    start(informers.run())
    await settle()
    assert informer.is_connected
