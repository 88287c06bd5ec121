"""The objects that every API server has: the Service `default/kubernetes` and the ConfigMaps with CA certificates."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.conformance.registry.conftest import Api, a_service

from federation.apiserver.auth.pki import Authority
from federation.apiserver.registry.capublisher import AUTHENTICATION, ROOT_CA, CAPublisher, combine
from federation.apiserver.registry.kubernetesservice import KubernetesService, advertised_address
from federation.apiserver.verbs.requestoptions import ListOptions

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SYSTEM = ("default", "kube-system", "kube-public", "kube-node-lease")
DESCRIPTION = "kubernetes.io/description"


class Publishing:
    """A registry with its loops and a running publisher of `ca`."""

    def __init__(self, api: Api, ca: str) -> None:
        self.api, self.ca, self.probes = api, ca, 0
        self.publisher = CAPublisher(api.registry, ca=self._pem, clock=api.clock)

    def _pem(self) -> bytes:
        return self.ca.encode()

    async def root_ca(self, namespace: str) -> str:
        if not await self.api.exists("configmaps", ROOT_CA, namespace):
            return ""
        found = await self.api.get("configmaps", ROOT_CA, namespace)
        return str(found["data"].get("ca.crt"))

    async def wait_published(self, namespace: str) -> None:
        async def is_published() -> bool:
            return await self.root_ca(namespace) == self.ca

        await self.api.eventually(is_published)

    async def wait_processed(self) -> None:
        """Return when the publisher has acted on every earlier change: it handles changes in order."""
        await self.api.patch("configmaps", ROOT_CA, {"data": {"ca.crt": "x"}}, "kube-public")
        await self.wait_published("kube-public")
        self.probes += 1
        await self.api.create("namespaces", {"metadata": {"name": f"probe-{self.probes}"}})
        await self.wait_published(f"probe-{self.probes}")

    async def wait_authentication(self, data: dict[str, str]) -> None:
        async def is_published() -> bool:
            if not await self.api.exists("configmaps", AUTHENTICATION, "kube-system"):
                return False
            return (await self.api.get("configmaps", AUTHENTICATION, "kube-system"))["data"] == data

        await self.api.eventually(is_published)

    async def versions(self) -> list[str]:
        names = [("default", ROOT_CA), ("kube-system", ROOT_CA), ("kube-system", AUTHENTICATION)]
        found = [await self.api.get("configmaps", name, namespace) for namespace, name in names]
        return [obj["metadata"]["resourceVersion"] for obj in found]


def authority(directory: Path, name: str, now: datetime = NOW) -> str:
    directory.joinpath(name).mkdir()
    return Authority.ensure(directory / name, now=now, common_name=name).certificate_path.read_text()


@pytest_asyncio.fixture
async def publishing(running: Api, tmp_path: Path) -> AsyncIterator[Publishing]:
    publishing = Publishing(running, authority(tmp_path, "own", running.clock.now()))
    task = asyncio.create_task(publishing.publisher.run())
    for namespace in SYSTEM:
        await publishing.wait_published(namespace)
    await publishing.wait_authentication({"client-ca-file": publishing.ca})
    yield publishing
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_every_namespace_gets_the_root_certificate(publishing: Publishing) -> None:
    await publishing.api.create("namespaces", {"metadata": {"name": "new"}})
    await publishing.wait_published("new")
    found = await publishing.api.get("configmaps", ROOT_CA, "new")
    assert found["metadata"]["annotations"][DESCRIPTION]


async def test_a_changed_or_deleted_root_certificate_is_published_again(publishing: Publishing) -> None:
    await publishing.api.patch("configmaps", ROOT_CA, {"data": {"ca.crt": "wrong", "more": "x"}}, field_manager="me")
    await publishing.wait_published("default")
    assert (await publishing.api.get("configmaps", ROOT_CA))["data"].keys() == {"ca.crt"}
    await publishing.api.delete("configmaps", ROOT_CA)
    await publishing.wait_published("default")


async def test_a_controller_manager_keeps_the_certificate_that_it_publishes(publishing: Publishing) -> None:
    found = await publishing.api.get("configmaps", ROOT_CA)
    await publishing.api.update(
        "configmaps", {**found, "data": {"ca.crt": "another bundle"}}, field_manager="kube-controller-manager"
    )
    await publishing.wait_processed()
    assert await publishing.root_ca("default") == "another bundle"


async def test_a_namespace_with_the_root_certificate_can_be_deleted(publishing: Publishing) -> None:
    await publishing.api.create("namespaces", {"metadata": {"name": "new"}})
    await publishing.wait_published("new")
    await publishing.api.delete("namespaces", "new")

    async def is_gone() -> bool:
        return not await publishing.api.exists("namespaces", "new")

    await publishing.api.eventually(is_gone)
    await publishing.wait_processed()
    assert not await publishing.api.exists("configmaps", ROOT_CA, "new")


@pytest.mark.every_store
async def test_a_publisher_that_starts_again_writes_nothing(publishing: Publishing) -> None:
    before = await publishing.versions()
    again = Publishing(publishing.api, publishing.ca)
    task = asyncio.create_task(again.publisher.run())
    await again.wait_processed()
    assert await publishing.versions() == before
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_renewed_authority_is_published_everywhere(publishing: Publishing, tmp_path: Path) -> None:
    first = publishing.ca
    publishing.ca = authority(tmp_path, "renewed", publishing.api.clock.now())
    publishing.publisher.ca_changed()
    for namespace in SYSTEM:
        await publishing.wait_published(namespace)
    await publishing.wait_authentication({"client-ca-file": first + publishing.ca})


async def test_the_authentication_configmap_keeps_what_others_wrote(publishing: Publishing, tmp_path: Path) -> None:
    other = authority(tmp_path, "other", publishing.api.clock.now())
    names = {"requestheader-allowed-names": '["front-proxy"]'}
    await publishing.api.patch(
        "configmaps", AUTHENTICATION, {"data": {"client-ca-file": other, **names}}, "kube-system"
    )
    await publishing.wait_authentication({"client-ca-file": other + publishing.ca, **names})
    await publishing.api.delete("configmaps", AUTHENTICATION, "kube-system")
    await publishing.wait_authentication({"client-ca-file": publishing.ca})


def test_expired_certificates_and_nonsense_leave_the_bundle(tmp_path: Path) -> None:
    own = authority(tmp_path, "own")
    expired = authority(tmp_path, "expired", NOW - timedelta(days=7300))
    assert combine(expired, own, NOW) == own
    assert combine(own, own, NOW) == own
    assert combine("nonsense", own, NOW) == own
    assert combine("", own, NOW) == own


def service_of(api: Api, address: str = "192.0.2.7", port: int = 7443) -> KubernetesService:
    return KubernetesService(api.registry, address=address, port=port, clock=api.clock)


async def objects(api: Api) -> dict[str, Any]:
    service = await api.get("services", "kubernetes")
    endpoints = await api.get("endpoints", "kubernetes")
    endpoint_slice = await api.get("endpointslices", "kubernetes")
    return {
        "service": (service["spec"]["type"], service["spec"]["clusterIP"], service["spec"]["ports"]),
        "endpoints": endpoints["subsets"],
        "slice": (endpoint_slice["addressType"], endpoint_slice["endpoints"], endpoint_slice["ports"]),
    }


async def test_the_service_names_the_servers_address(api: Api) -> None:
    await service_of(api).reconcile()
    port = {"name": "https", "port": 7443, "protocol": "TCP"}
    assert await objects(api) == {
        "service": (
            "ClusterIP",
            "10.96.0.1",
            [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 7443}],
        ),
        "endpoints": [{"addresses": [{"ip": "192.0.2.7"}], "ports": [port]}],
        "slice": ("IPv4", [{"addresses": ["192.0.2.7"], "conditions": {"ready": True}}], [port]),
    }
    service = await api.get("services", "kubernetes")
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    mirrored = (await api.get("endpoints", "kubernetes"))["metadata"]["labels"]
    assert mirrored == {"endpointslice.kubernetes.io/skip-mirror": "true"}
    owner = (await api.get("endpointslices", "kubernetes"))["metadata"]["labels"]
    assert owner == {"kubernetes.io/service-name": "kubernetes"}


async def test_the_endpoints_are_those_of_all_servers_that_renew_their_leases(api: Api) -> None:
    def server(number: int) -> KubernetesService:
        return KubernetesService(
            api.registry, address=f"192.0.2.{number}", port=7443, clock=api.clock, identity=f"server-{number}"
        )

    async def addresses() -> list[str]:
        (subset,) = (await objects(api))["endpoints"]
        return [each["ip"] for each in subset["addresses"]]

    one, two = server(1), server(2)
    for each in (one, two, one):
        await each.reconcile()
    assert await addresses() == ["192.0.2.1", "192.0.2.2"]
    listed = (await objects(api))["slice"][1]
    assert [each["addresses"] for each in listed] == [["192.0.2.1"], ["192.0.2.2"]]
    for _ in range(4):  # the second one is silent for longer than its Lease lasts
        await api.clock.advance(10)
        await one.reconcile()
    assert await addresses() == ["192.0.2.1"]
    await api.clock.advance(4000)
    await one.reconcile()
    info = api.registry.kinds.lookup("coordination.k8s.io", "v1", "leases")
    held = await api.registry.list(info, "kube-system", ListOptions())
    assert len(held.items) == 1, "a server that never comes back leaves nothing"


@pytest.mark.every_store
async def test_a_restart_at_the_same_address_writes_nothing(api: Api) -> None:
    await service_of(api).reconcile()
    before = await api.registry.revision()
    await service_of(api).reconcile()
    assert await api.registry.revision() == before


async def test_endpoints_follow_the_address_and_deletions(running: Api) -> None:
    await service_of(running).reconcile()
    task = asyncio.create_task(service_of(running, "2001:db8::5", 6443).run())

    async def is_moved() -> bool:
        found = (
            (await running.get("endpointslices", "kubernetes"))
            if await running.exists("endpointslices", "kubernetes")
            else {}
        )
        return found.get("addressType") == "IPv6" and found["ports"][0]["port"] == 6443

    await running.eventually(is_moved)
    assert (await running.get("endpoints", "kubernetes"))["subsets"][0]["addresses"] == [{"ip": "2001:db8::5"}]
    for plural in ("services", "endpoints", "endpointslices"):
        await running.delete(plural, "kubernetes")

    async def is_back() -> bool:
        return all([await running.exists(each, "kubernetes") for each in ("services", "endpoints", "endpointslices")])

    await running.eventually(is_back)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_service_of_a_user_may_hold_the_first_address(api: Api) -> None:
    await api.create("services", a_service("mine", clusterIP="10.96.0.1"))
    await service_of(api).reconcile()
    assert (await api.get("services", "kubernetes"))["spec"]["clusterIP"] not in {"10.96.0.1", "None"}


async def test_a_service_that_exists_is_left_as_it_is(api: Api) -> None:
    await api.create("services", a_service("kubernetes", ports=[{"port": 8443}]))
    await service_of(api).reconcile()
    assert [port["port"] for port in (await api.get("services", "kubernetes"))["spec"]["ports"]] == [8443]


async def test_without_an_address_only_the_service_exists(api: Api) -> None:
    await service_of(api, "").reconcile()
    assert await api.exists("services", "kubernetes")
    assert not await api.exists("endpoints", "kubernetes")


@pytest.mark.parametrize(
    ("host", "advertised", "expected"),
    [
        ("192.0.2.1", "", "192.0.2.1"),
        ("0.0.0.0", "192.0.2.9", "192.0.2.9"),
        ("127.0.0.1", "192.0.2.9", "192.0.2.9"),
        ("2001:db8::1", "", "2001:db8::1"),
    ],
)
def test_the_advertised_address_wins_over_the_listening_one(host: str, advertised: str, expected: str) -> None:
    assert advertised_address(host, advertised) == expected
