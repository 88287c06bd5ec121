"""Light members behind one port, over real HTTPS: paths, credentials, failures, and a life of their own each."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from tests.support.simulatedmember import a_workload

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ClusterUnreachable, RequestTimeout, ServiceUnavailable, Unauthorized
from federation.apimachinery.resources import API_SERVICES, CLUSTER_ROLES, DEPLOYMENTS, NAMESPACES, NODES, PODS
from federation.client.client import WatchEventType
from federation.client.http import HTTPClient, HTTPOptions
from federation.client.kubeconfig import load_kubeconfig
from federation.simulator.failingmember import FailingMember
from federation.simulator.failures import FailureCommand, Verb
from federation.simulator.lightmember import light_members
from federation.simulator.options import describe_members, kubeconfig_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("light")]


@dataclass
class Fleet:
    """Two light members and their administrators."""

    members: list[FailingMember]
    clients: list[HTTPClient]

    async def sim(self, index: int, verb: Verb, **options: float) -> None:
        await self.members[index].execute(FailureCommand(verb, **options))  # type: ignore[arg-type]  # floats only


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    directory: Path = tmp_path_factory.mktemp("light")
    clock = SystemClock()
    async with light_members(directory, clock) as start:
        members = [
            FailingMember(options, kubeconfig_of(options.name, directory), start, clock)
            for options in describe_members(2, pod_start_s=0, running_pods=4)
        ]
        await asyncio.gather(*(member.start() for member in members))
        kubeconfigs = [Path(member.description["kubeconfig"]) for member in members]
        clients = [HTTPClient(load_kubeconfig(path, "")) for path in kubeconfigs]
        yield Fleet(members, clients)
        await asyncio.gather(*(client.close() for client in clients), *(member.end() for member in members))


async def test_members_share_a_port_and_nothing_else(fleet: Fleet) -> None:
    one, two = (member.status["server"] for member in fleet.members)
    assert one.removesuffix("/clusters/member-1") == two.removesuffix("/clusters/member-2")
    uids = [(await client.get(NAMESPACES, "kube-system"))["metadata"]["uid"] for client in fleet.clients]
    assert uids[0] != uids[1]
    names = [{node["metadata"]["name"] for node in (await client.list(NODES)).items} for client in fleet.clients]
    assert not names[0] & names[1]


async def test_members_copy_what_the_loops_of_an_api_server_write_first(fleet: Fleet) -> None:
    for resource, name in ((CLUSTER_ROLES, "admin"), (API_SERVICES, "v1.apps")):
        one, two = [await client.get(resource, name) for client in fleet.clients]
        assert one == two  # a write of a member's own would have an uid, a time or a revision of its own
        assert one.get("rules") or resource == API_SERVICES


async def test_a_member_runs_workloads(fleet: Fleet) -> None:
    client = fleet.clients[0]
    await client.create(DEPLOYMENTS, a_workload(DEPLOYMENTS, replicas=2))
    async with asyncio.timeout(60):
        version = (await client.list(DEPLOYMENTS, "default", limit=1)).resource_version
        obj = await client.get(DEPLOYMENTS, "web", "default")
        async for batch in client.watch(DEPLOYMENTS, "default", resource_version=version):
            obj = next((event.object for event in reversed(batch)), obj)
            if obj.get("status", {}).get("readyReplicas") == 2:
                break
    assert (await fleet.clients[1].list(DEPLOYMENTS)).items == []


async def test_a_member_starts_with_running_pods_on_its_own_nodes(fleet: Fleet) -> None:
    uids: set[str] = set()
    for client in fleet.clients:
        nodes = {node["metadata"]["name"] for node in (await client.list(NODES)).items}
        page = await client.list(PODS, "default", label_selector="app=running")
        assert {pod["metadata"]["name"] for pod in page.items} == {f"running-{number}" for number in range(1, 5)}
        assert {pod["spec"]["nodeName"] for pod in page.items} == nodes
        for pod in page.items:
            conditions = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
            assert (pod["status"]["phase"], conditions["Ready"]) == ("Running", "True")
            containers = {each["containerID"] for each in pod["status"]["containerStatuses"]}
            assert all(pod["metadata"]["uid"] in each for each in containers)
            uids.add(pod["metadata"]["uid"])
        await client.delete(PODS, "running-1", "default", grace_period_s=0)
        async with asyncio.timeout(60):
            async for batch in client.watch(PODS, "default", resource_version=page.resource_version):
                seen = [(event.type, event.object["metadata"]["name"]) for event in batch]
                if (WatchEventType.DELETED, "running-1") in seen:
                    break
    assert len(uids) == 8


async def test_a_token_of_one_member_is_refused_by_another(fleet: Fleet) -> None:
    one, two = fleet.clients
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    code, body = await one.raw("POST", path, body={"spec": {}}, timeout_s=60)
    assert code == 201, body
    token = body.partition(b'"token":"')[2].partition(b'"')[0].decode()
    connection = two.connection
    stranger = HTTPClient(type(connection)(connection.server, ca_data=connection.ca_data, token=token))
    with pytest.raises(Unauthorized):
        await stranger.list(NAMESPACES)
    await stranger.close()


async def test_unknown_members_get_a_status_that_names_the_form_of_paths(fleet: Fleet) -> None:
    server = fleet.clients[0].connection.server.removesuffix("/member-1")
    stranger = HTTPClient(fleet.clients[0].connection.at(f"{server}/member-99"))
    code, body = await stranger.raw("GET", "/readyz", timeout_s=60)
    await stranger.close()
    assert code == 404
    assert b"a member's path is /clusters/NAME" in body


async def test_failures_of_one_member_leave_the_other_alone(fleet: Fleet) -> None:
    failing, other = fleet.clients
    impatient = HTTPClient(failing.connection, HTTPOptions(request_timeout_s=1))
    for verb, options, error in (
        (Verb.STOP, {}, ClusterUnreachable),
        (Verb.HANG, {}, RequestTimeout),
        (Verb.FAIL, {"error_share": 1.0}, ServiceUnavailable),
    ):
        await fleet.sim(0, verb, **options)
        with pytest.raises(error):
            await (impatient if verb is Verb.HANG else failing).list(NODES)
        assert len((await other.list(NODES)).items) == 3
        await fleet.sim(0, Verb.START)
        assert len((await failing.list(NODES)).items) == 3
    await impatient.close()


async def test_a_stop_breaks_open_watches_and_a_start_keeps_the_objects(fleet: Fleet) -> None:
    client = fleet.clients[1]
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}})
    version = (await client.list(NAMESPACES)).resource_version
    watching = client.watch(NAMESPACES, resource_version=version)
    await anext(watching)
    await fleet.sim(1, Verb.STOP)
    with pytest.raises(ClusterUnreachable):
        await anext(watching)
    await fleet.sim(1, Verb.START)
    assert (await client.get(NAMESPACES, "kept"))["status"] == {"phase": "Active"}
