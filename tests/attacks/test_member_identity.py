"""Another cluster answers at a member's address, the host joins itself, federations form a cycle."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from tests.support.lines import MemberLine
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world
from tests.support.worldmember import Member

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ClusterIdentityMismatch
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, SECRETS, Object
from federation.apiserver.registry.registry import Registry
from federation.client.client import PatchType
from federation.client.identity import Identity
from federation.client.pool import ClusterPool
from federation.controllers.cluster.names import EVENT_IDENTITY_MISMATCH, REASON_CLUSTER_UNJOINABLE


async def condition(world: World, cluster: str, type_: str) -> dict[str, Any]:
    found = await world.user.get(FEDERATED_CLUSTERS, cluster)
    return dict(conditions.find((found.get("status") or {}).get("conditions"), type_) or {})


async def until_reason(world: World, cluster: str, type_: str, reason: str) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        found = await condition(world, cluster, type_)
        return found if found.get("reason") == reason else {}

    return await world.until(look, f"{type_} with reason {reason}")


async def uid_of(client: Any) -> str:
    return str((await client.get(NAMESPACES, "kube-system"))["metadata"]["uid"])


def workloads_in(line: MemberLine) -> list[tuple[str, str, str]]:
    """Return the calls that carry or ask for more than the identity."""
    return [call for call in line.calls if call[0] != "raw" and call[:2] != ("get", "namespaces")]


def serve_from(member: Member, registry: Registry) -> None:
    """Let another cluster answer at the member's address."""
    member.line._registry = registry  # the address is the same, the server behind it is not


async def test_an_address_that_leads_to_another_cluster_gets_nothing() -> None:
    async with a_world(members=("east",)) as world:
        await world.add_member("impostor", {})
        impostor = world.members["impostor"]
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_replicas("web", {"east": 2})
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"apiEndpoint": "https://impostor"}})
        ready = await until_reason(world, "east", names.CLUSTER_READY, names.REASON_IDENTITY_MISMATCH)
        assert ready["status"] == "False"
        assert await uid_of(impostor.admin) in ready["message"]
        await world.create(DEPLOYMENTS, a_deployment("later", replicas=1))
        await world.scale("web", 3)
        await world.pass_time(30)
        assert workloads_in(impostor.line) == []
        assert EVENT_IDENTITY_MISMATCH in [reason for reason, _ in await world.events()]
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"apiEndpoint": "https://east"}})
        await world.until_ready("east")
        await world.until_replicas("web", {"east": 3})
        del world.members["impostor"]


async def test_a_cluster_that_takes_over_the_address_during_an_outage_gets_nothing() -> None:
    async with a_world(members=("east",)) as world:
        await world.add_member("impostor", {})
        east, impostor = world.members["east"], world.members["impostor"]
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_replicas("web", {"east": 2})
        east.line.mode = "down"
        await world.pass_time(15)
        await world.scale("web", 3)
        await world.pass_time(1)
        serve_from(east, impostor.registry)
        east.line.calls.clear()
        east.line.mend()
        await until_reason(world, "east", names.CLUSTER_READY, names.REASON_IDENTITY_MISMATCH)
        await world.pass_time(30)
        assert workloads_in(east.line) == []
        east.line.mode = "down"
        await world.pass_time(1)
        serve_from(east, east.registry)
        east.line.mend()
        await world.until_ready("east")
        await world.until_replicas("web", {"east": 3})
        del world.members["impostor"]


async def test_a_member_that_joined_before_uids_were_recorded_gets_its_uid_recorded() -> None:
    async with a_world(members=("east",)) as world:
        await world.stop()
        patch = [{"op": "remove", "path": "/status/clusterUid"}]
        await world.user.patch(FEDERATED_CLUSTERS, "east", patch, patch_type=PatchType.JSON, subresource="status")
        await world.restart()
        uid = await uid_of(world.members["east"].admin)

        async def recorded() -> bool:
            return bool((await world.user.get(FEDERATED_CLUSTERS, "east"))["status"].get("clusterUid") == uid)

        await world.until(recorded)


async def test_a_leaving_cluster_says_that_another_one_has_its_address_also_after_a_restart() -> None:
    async with a_world(members=("east",)) as world:
        world.members["east"].line.mode = "down"
        await world.user.delete(FEDERATED_CLUSTERS, "east")
        await world.pass_time(5)
        await world.stop()
        await world.replace_member("east", None)
        world.members["east"].line.mend()
        await world.restart()
        await until_reason(world, "east", names.CLUSTER_READY, names.REASON_IDENTITY_MISMATCH)
        await world.unjoin_by_force("east")
        await world.until_gone(FEDERATED_CLUSTERS, "east")
        del world.members["east"]


async def test_the_host_cannot_join_itself_whatever_its_url() -> None:
    async with a_world(members=("east",)) as world:
        line = MemberLine(world.registry, world.clock)
        world.add_line("myself", cast("Member", SimpleNamespace(line=line, labels={}, name="myself")))
        await world.join("myself")
        joined = await until_reason(world, "myself", names.CLUSTER_JOINED, REASON_CLUSTER_UNJOINABLE)
        assert "cannot join itself" in joined["message"]
        assert line.writes() == []
        del world.members["myself"]


async def test_a_cycle_of_federations_is_refused() -> None:
    async with a_world(members=("east",)) as world:
        host_uid = await uid_of(world.user)
        namespace = await world.members["east"].admin.get(NAMESPACES, names.SYSTEM_NAMESPACE)
        assert namespace["metadata"]["annotations"][names.HOST_CLUSTER_UIDS] == host_uid
        # The host of this federation is a member of the federation of `above`, which then tries to join below.
        await world.add_member("above", {})
        above = world.members["above"]
        claim = {"metadata": {"annotations": {names.HOST_CLUSTER_UIDS: f"other,{await uid_of(above.admin)}"}}}
        await world.merge(NAMESPACES, names.SYSTEM_NAMESPACE, claim, namespace="")
        await world.join("above")
        joined = await until_reason(world, "above", names.CLUSTER_JOINED, REASON_CLUSTER_UNJOINABLE)
        assert "cycle" in joined["message"]
        assert above.line.writes() == []
        del world.members["above"]


class Server:
    """A cluster over HTTP that closes each connection after one answer, so that each request is a reconnect."""

    def __init__(self, uid: str, claim: str) -> None:
        self.uid, self.claim = uid, claim
        self.requests: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        if length := re.search(r"content-length: (\d+)", head.lower()):
            await reader.readexactly(int(length[1]))
        self.requests.append(head.partition(" HTTP")[0])
        uid = self.uid if "kube-system" in head.splitlines()[0] else "x"
        annotations = {names.FEDERATED_CLUSTER_UID: self.claim}
        body: Object = {"metadata": {"name": "x", "resourceVersion": "1", "uid": uid, "annotations": annotations}}
        data = orjson.dumps(body)
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data))
        await writer.drain()
        writer.close()


@pytest.mark.real_time
@pytest.mark.parametrize(("uid", "claim"), [("kube-other", "fcluster"), ("kube-east", "somebody")])
async def test_each_new_connection_is_checked_before_a_write_is_sent_on_it(uid: str, claim: str) -> None:
    east, impostor = Server("kube-east", "fcluster"), Server(uid, claim)
    current = [east]

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await current[0].handle(reader, writer)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    pool = ClusterPool()
    pool.set_connection("east", Connection(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    guard = pool._transports["east"]  # `update` needs a Secret; the expected identity is the same
    guard.expect(Identity("fcluster", "kube-east"))
    client = pool.client("east")
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}
    await client.create(SECRETS, obj)
    assert east.requests[-1].startswith("POST")
    current[0] = impostor
    for _ in range(3):
        with pytest.raises(ClusterIdentityMismatch):
            await client.create(SECRETS, obj)
        with pytest.raises(ClusterIdentityMismatch):
            await client.list(CONFIGMAPS)
        with pytest.raises(ClusterIdentityMismatch):
            await anext(client.watch(CONFIGMAPS, resource_version="1"))
    assert {request.rpartition("/")[2] for request in impostor.requests} <= {"kube-system", names.SYSTEM_NAMESPACE}
    current[0] = east
    await asyncio.sleep(1.1)
    await client.create(SECRETS, obj)
    await pool.close()
    server.close()


@pytest.mark.parametrize("answer", [{}, {"metadata": 3}, {"metadata": {"uid": 7, "annotations": []}}])
async def test_nonsense_instead_of_an_identity_is_a_mismatch(answer: Object) -> None:
    class Nonsense:
        async def request(self, request: Any) -> Object:
            return answer

        async def close(self) -> None:
            pass

    pool = ClusterPool()
    pool.set_transport("east", cast("Any", Nonsense()))
    pool._transports["east"].expect(Identity("fcluster", "kube-east"))  # as above
    with pytest.raises(ClusterIdentityMismatch):
        await pool.client("east").list(CONFIGMAPS)
