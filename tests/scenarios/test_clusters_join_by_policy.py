"""Clusters of another inventory join by a ClusterJoinPolicy, although program, host, member and control plane fail meanwhile."""

import base64
import functools
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.deceits import Deceit, Send
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.clock import ManualClock, to_rfc3339
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, Unauthorized
from federation.apimachinery.execplugin import ExecPlugin
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS, Object
from federation.apiserver.auth.pki import ensure_pki
from federation.apiserver.auth.serviceaccounttokens import ServiceAccountTokens
from federation.client.client import Request
from federation.client.execplugin import ExecCredential
from federation.features.clusterprofiles.names import CLUSTER_JOIN_POLICIES, CLUSTER_PROFILES

SOON_S = 10


class Program:
    """The provider's program: it fails with the messages in `failures`, then it gives tokens."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.runs = 0

    async def __call__(
        self, plugin: ExecPlugin, connection: Connection, config: Object | None = None, *, timeout_s: float
    ) -> ExecCredential:
        assert (plugin.command, connection.server, timeout_s) == ("/opt/token", "https://west", 30)
        self.runs += 1
        if self.failures:
            raise ConfigurationError(f"/opt/token ended with code 1: {self.failures.pop(0)}")
        return ExecCredential(f"token-{self.runs}")


class Issuer(Deceit):
    """A member that issues tokens of service accounts, and rejects all credentials while they are expired."""

    def __init__(self, tokens: ServiceAccountTokens, clock: ManualClock) -> None:
        self._tokens = tokens
        self._clock = clock
        self.is_expired = False

    async def answer(self, request: Request, send: Send) -> Object:
        if self.is_expired:
            raise Unauthorized("the token has expired")
        if request.subresource != "token":
            return await send(request)
        account = await send(Request("get", SERVICE_ACCOUNTS, request.namespace, request.name))
        now, uid = self._clock.now(), account["metadata"]["uid"]
        token = self._tokens.issue(namespace=request.namespace, name=request.name, uid=uid, now=now, expires_s=10**6)
        return {"status": {"token": token, "expirationTimestamp": to_rfc3339(now + timedelta(seconds=10**6))}}


class Inventory:
    """The files of the administrator, the program, and what other managers write."""

    def __init__(self, folder: Path) -> None:
        self.program = Program()
        pki = ensure_pki(folder, now=ManualClock().now())
        self.tokens = ServiceAccountTokens(pki.token_key)
        self.ca = base64.b64encode(pki.ca_certificate.read_bytes()).decode()
        self.path = folder / "providers.yaml"
        config = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/opt/token", "interactiveMode": "Never"}
        provider = {"name": "ocm", "servers": ["https://west"], "execConfig": config}
        self.path.write_text(yaml.safe_dump({"providers": [provider]}))

    def world(self, **options: Any) -> Any:
        """Return a world in which the cluster west runs and has not joined."""
        return a_world_without_pods(
            members=("east",), run_program=self.program, cluster_providers_file=str(self.path), **options
        )

    async def begin(self, world: World) -> Issuer:
        """Start the cluster, and write the policy and the profile."""
        await world.add_member("west", {})
        line = world.members["west"].line
        line.deceit = issuer = Issuer(self.tokens, world.clock)
        await world.create(NAMESPACES, {"metadata": {"name": "inventory"}})
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        spec = {"namespaces": ["inventory"], "providers": ["ocm"]}
        await world.create(CLUSTER_JOIN_POLICIES, {"metadata": {"name": "from-ocm"}, "spec": spec})
        await self.write(world)
        return issuer

    async def write(self, world: World, provider: str = "ocm") -> None:
        """Create the profile, or write its status again."""
        manager = {"spec": {"clusterManager": {"name": "ocm"}}}
        if await world.find(CLUSTER_PROFILES, "west", "inventory") is None:
            await world.create(CLUSTER_PROFILES, {"metadata": {"name": "west", "namespace": "inventory"}, **manager})
        cluster = {"server": "https://west", "certificate-authority-data": self.ca}
        status = {"status": {"accessProviders": [{"name": provider, "cluster": cluster}]}}
        await world.user.patch(CLUSTER_PROFILES, "west", status, namespace="inventory", subresource="status")


@pytest.fixture(scope="module")
def pki_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inventory")


@pytest.fixture
def inventory(pki_folder: Path) -> Inventory:
    return Inventory(pki_folder)


async def problem(world: World) -> str:
    status = (await world.user.get(CLUSTER_JOIN_POLICIES, "from-ocm")).get("status") or {}
    return " ".join(each["message"] for each in status.get("problems") or ())


async def counts(world: World) -> tuple[int, int]:
    status = (await world.user.get(CLUSTER_JOIN_POLICIES, "from-ocm")).get("status") or {}
    return status.get("selected", 0), status.get("joined", 0)


async def says(world: World, text: str) -> bool:
    return text in await problem(world)


async def until_works(world: World) -> None:
    """Wait until the cluster has joined and runs its share, and nothing of the program is stored any more."""
    await world.until_equal(lambda: counts(world), (1, 1))
    await world.until_ready("west")
    await world.create(DEPLOYMENTS, a_deployment("web", 4))
    await world.until_replicas("web", {"east": 2, "west": 2})
    assert await problem(world) == ""
    data = (await world.user.get(SECRETS, "west-credentials", names.SYSTEM_NAMESPACE))["data"]
    assert set(data) == {names.SECRET_CA, names.SECRET_SERVICE_ACCOUNT_TOKEN}


async def test_it_joins_once_although_everything_on_its_way_fails_first(inventory: Inventory) -> None:
    inventory.program.failures = ["no network", "no network"]
    async with inventory.world() as world:
        issuer = await inventory.begin(world)
        west = world.members["west"]
        await world.until(functools.partial(says, world, "/opt/token ended with code 1: no network"))
        west.line.faults.begin(0.4, "5xx", "409", "429")
        world.host_line.failing.add(("create", "secrets"))
        await world.until(functools.partial(world.find, FEDERATED_CLUSTERS, "west"), "the cluster")
        await world.until(functools.partial(says, world, "the store does not answer"))
        world.kill()
        await world.restart()
        world.host_line.failing.clear()
        await world.until(functools.partial(world.find, SECRETS, "west-credentials", names.SYSTEM_NAMESPACE))
        issuer.is_expired = True  # what the program gave has expired before the join is complete
        await world.pass_time(20)
        assert await counts(world) == (1, 0)
        west.line.faults.end()
        issuer.is_expired = False
        await until_works(world)
        runs = inventory.program.runs
        assert runs <= 8
        await world.restart()
        await world.pass_time(130)
        assert inventory.program.runs == runs, "its own account is in use"
        assert {each["metadata"]["name"] for each in (await world.user.list(FEDERATED_CLUSTERS)).items} == {
            "east",
            "west",
        }


@pytest.mark.slow("a member is lost for longer than a join is tried")
async def test_a_cluster_that_does_not_answer_for_long_joins_when_it_does(inventory: Inventory) -> None:
    async with inventory.world() as world:
        await inventory.begin(world)
        west = world.members["west"]
        west.line.mode = "down"
        await world.pass_time(620)
        await world.restart()
        await world.pass_time(60)
        assert await counts(world) == (1, 0)
        west.line.mode = "up"
        await until_works(world)


async def test_what_is_in_the_way_is_removed_and_the_cluster_joins_at_once(inventory: Inventory) -> None:
    async with inventory.world() as world:
        await world.create(NAMESPACES, {"metadata": {"name": names.SYSTEM_NAMESPACE}}) if await world.find(
            NAMESPACES, names.SYSTEM_NAMESPACE, ""
        ) is None else None
        secret = {"metadata": {"name": "west-credentials", "namespace": names.SYSTEM_NAMESPACE}, "data": {}}
        await world.create(SECRETS, secret)
        spec = {"apiEndpoint": "https://west", "insecure": True, "secretRef": {"name": "none"}}
        await world.create(FEDERATED_CLUSTERS, {"metadata": {"name": "other"}, "spec": spec})
        await inventory.begin(world)
        await world.until(functools.partial(says, world, 'https://west has joined as "other"'))
        await world.unjoin_by_force("other")
        await soon(world, "is not of this profile; delete it")
        await world.user.delete(SECRETS, "west-credentials", names.SYSTEM_NAMESPACE)
        inventory.program.failures = ["no network"]
        await soon(world, "no network")
        await inventory.write(world, "unknown")
        await soon(world, "status.accessProviders has none of ocm")
        await inventory.write(world)
        await until_works(world)


async def soon(world: World, text: str) -> None:
    for _ in range(SOON_S):
        if await says(world, text):
            return
        await world.pass_time(1)
    raise AssertionError(f"expected {text!r} within {SOON_S} s, last seen: {await problem(world)!r}")


async def test_what_a_cluster_kept_stays_when_its_profile_makes_it_join_again(inventory: Inventory) -> None:
    async with inventory.world() as world:
        await inventory.begin(world)
        await until_works(world)
        west = world.members["west"]
        before = await west.admin.get(DEPLOYMENTS, "web", "default")
        joined = (await world.user.get(FEDERATED_CLUSTERS, "west"))["metadata"]["uid"]
        await world.user.delete(FEDERATED_CLUSTERS, "west")

        async def has_joined_again() -> bool:
            found = await world.find(FEDERATED_CLUSTERS, "west", "")
            return found is not None and found["metadata"]["uid"] != joined and await counts(world) == (1, 1)

        await world.until(has_joined_again)
        await world.until_ready("west")
        await world.pass_time(100)
        after = await west.admin.get(DEPLOYMENTS, "web", "default")
        assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
        assert names.MANAGED_LABEL not in (after["metadata"].get("labels") or {})
        kept = [each["spec"] for each in (await world.user.list(LEFTOVERS)).items]
        assert ("west", "web", "Kept") in {(each["cluster"], each["name"], each["reason"]) for each in kept}
        assert ("delete", "deployments", "web") not in west.line.calls
