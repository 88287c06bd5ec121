"""The certificate that several processes share: created once, renewed once, restored, and never trusted blindly."""

import asyncio
import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from federation.api import names
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.resources import SECRETS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.hosting.sharedcertificate import NAMESPACE, SharedCertificate, delete_certificate

LIFE = timedelta(days=365)


class World:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.registry = Registry(MemoryStore(clock=self.clock), clock=self.clock)
        self.client = LocalClient(self.registry, user_agent="test")
        self._folder = folder

    def process(self, number: int, name: str = "10.0.0.5") -> SharedCertificate:
        folder = self._folder / str(number)
        folder.mkdir()
        return SharedCertificate(self.client, folder, name, self.clock)

    async def secret(self) -> Object:
        return await self.client.get(SECRETS, names.SPREAD_WEBHOOKS, NAMESPACE)

    async def served(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(base64.b64decode((await self.secret())["data"]["tls.crt"]))


@pytest.fixture
async def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    await world.registry.start()
    return world


def names_of(certificate: x509.Certificate) -> set[str]:
    held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*held.get_values_for_type(x509.DNSName), *map(str, held.get_values_for_type(x509.IPAddress))}


async def test_processes_that_start_together_serve_the_same_certificate(world: World) -> None:
    processes = [world.process(number) for number in range(4)]
    await asyncio.gather(*(process.refresh() for process in processes))
    data = (await world.secret())["data"]
    assert {process.bundle for process in processes} == {data["ca.crt"]}
    for process in processes:
        assert process.files.certificate.read_bytes() == base64.b64decode(data["tls.crt"])
        assert process.files.key.read_bytes() == base64.b64decode(data["tls.key"])
        assert process.files.key.stat().st_mode & 0o077 == 0


async def test_the_first_process_that_finds_it_due_renews_it_for_all(world: World) -> None:
    first, second = world.process(1), world.process(2)
    await first.refresh()
    await second.refresh()
    before, bundle = await world.served(), first.bundle
    await first.refresh()
    assert await world.served() == before
    await world.clock.advance(LIFE.total_seconds() * 0.7)
    await asyncio.gather(second.refresh(), first.refresh())
    renewed = await world.served()
    assert renewed.not_valid_after_utc > before.not_valid_after_utc
    renewed.verify_directly_issued_by(x509.load_pem_x509_certificate(base64.b64decode(bundle)))
    assert first.bundle == second.bundle == bundle
    assert first.files.certificate.read_bytes() == second.files.certificate.read_bytes()


async def test_the_certificate_has_the_names_of_all_processes(world: World) -> None:
    first, second = world.process(1, "10.0.0.5"), world.process(2, "spread.example.com")
    await first.refresh()
    await second.refresh()
    assert names_of(await world.served()) == {"10.0.0.5", "spread.example.com"}
    revision = (await world.secret())["metadata"]["resourceVersion"]
    await first.refresh()
    await second.refresh()
    assert (await world.secret())["metadata"]["resourceVersion"] == revision


async def test_a_deleted_secret_is_restored_from_the_files(world: World) -> None:
    process = world.process(1)
    await process.refresh()
    before = (await world.secret())["data"]
    await delete_certificate(world.client)
    await delete_certificate(world.client)
    with pytest.raises(NotFound):
        await world.secret()
    await process.refresh()
    assert (await world.secret())["data"] == before


@pytest.mark.parametrize("lost", ["tls.crt", "tls.key", "ca.crt"])
async def test_a_lost_part_is_made_again(world: World, lost: str) -> None:
    await world.process(1).refresh()
    secret = await world.secret()
    await world.client.update(SECRETS, {**secret, "data": {**secret["data"], lost: ""}})
    process = world.process(2)
    await process.refresh()
    authority = x509.load_pem_x509_certificate(base64.b64decode(process.bundle))
    (await world.served()).verify_directly_issued_by(authority)
    assert (await world.secret())["data"]["ca.key"] == secret["data"]["ca.key"]


@pytest.mark.parametrize("change", [{"ca.crt": "bm9uZQ=="}, {"ca.key": "bm9uZQ=="}], ids=["certificate", "key"])
async def test_a_damaged_ca_is_reported(world: World, change: dict[str, Any]) -> None:
    await world.process(1).refresh()
    secret = await world.secret()
    await world.client.update(SECRETS, {**secret, "data": {**secret["data"], **change}})
    with pytest.raises(ConfigurationError, match=f"{NAMESPACE}/{names.SPREAD_WEBHOOKS} cannot be used"):
        await world.process(2).refresh()


async def test_other_keys_of_the_secret_stay(world: World) -> None:
    await world.process(1).refresh()
    secret = await world.secret()
    await world.client.update(SECRETS, {**secret, "data": {**secret["data"], "note": "eA=="}})
    await world.process(2, "other.example.com").refresh()
    assert (await world.secret())["data"]["note"] == "eA=="
