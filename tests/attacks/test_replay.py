"""Attack: a user of a namespace learns from a replay what others run, or makes the host compute without end."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.test_projects import a_project
from tests.support.manifests import a_deployment, a_policy
from tests.support.tenants import Tenants, tenants
from tests.support.world import World, a_world_without_pods

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROJECTS
from federation.apimachinery.errors import BadRequest, ServiceUnavailable
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object
from federation.cli.replay.worker import answer
from federation.journal.memoryjournal import MemoryJournal
from federation.scheduling.replay.logentries import Chunk, compress
from federation.web.delivery import DeliveryView
from federation.web.objectlist import ObjectListView
from federation.web.replaycomparison import (
    _MEMORY_BYTES_OF_NAMESPACE_MAX as OWN_MEMORY,
)
from federation.web.replaycomparison import PATH, Own, ReplayRequest, _read, _read_own, compute

SINCE = {"since": "2020-01-01T00:00:00Z"}
OWN = {**SINCE, "namespace": "default"}
SECRET = "quiet-launch"


async def with_records(world: World) -> None:
    await world.user.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    policy = {**a_policy({"east": 1, "west": 1}), "kind": "ClusterPropagationPolicy", "metadata": {"name": "all"}}
    await world.create(CLUSTER_PROPAGATION_POLICIES, policy)
    for namespace, name in (("default", "web"), ("other", SECRET)):
        workload = a_deployment(name, 4)
        workload["metadata"]["namespace"] = namespace
        await world.create(DEPLOYMENTS, workload)
    await world.settle()


def own_policy(**metadata: Any) -> Object:
    policy = a_policy({"east": 1}, name="mine")
    policy["metadata"] |= metadata
    return policy


async def served(world: World, host: Tenants) -> None:
    host.parts.journal.chunks.extend(await world.journal.read_inputs(0, (0, 0), 1 << 40))


def listed(world: World) -> ObjectListView:
    plane = world.plane
    view = DeliveryView(
        plane.objects, plane.informers, plane.members, plane.member_records, plane.tolerated, plane.preview
    )
    return ObjectListView(plane.objects, plane.informers, view)


@pytest.mark.slow("a fleet with recorded decisions, and a replay of them")
async def test_a_replay_shows_a_user_of_a_namespace_only_what_is_his(tmp_path: Path) -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        await with_records(world)
        async with tenants(tmp_path, registry=world.registry, listed=listed(world)) as host:
            await served(world, host)
            editor, root = await host.client("editor"), await host.root()
            everything = (await root.post(PATH, json={**SINCE, "withoutClusters": ["west"]})).json()
            assert {each["namespace"] for each in everything["byNamespace"]} == {"default", "other"}
            assert everything["differentCount"] == 2
            refused = await editor.post(PATH, json=SINCE)
            assert refused.status_code == 403, refused.text
            assert "name a namespace" in refused.text
            mine = await editor.post(PATH, json={**OWN, "objects": [own_policy()]})
            assert mine.status_code == 200, mine.text
            assert [each["name"] for each in mine.json()["different"]] == ["web"]
            assert SECRET not in mine.text
            assert "other" not in {each["namespace"] for each in mine.json()["byNamespace"]}
            assert "utilisation" not in mine.text, "what all others use is no number of his"
            assert (await editor.post(PATH, json={**SINCE, "namespace": "other"})).status_code == 403
            for change in (
                {"withoutClusters": ["west"]},
                {"addClusters": ["west"]},
                {"profile": "x"},
                {"objects": [own_policy(namespace="other")]},
                {"objects": [{**own_policy(), "kind": "ClusterPropagationPolicy"}]},
                {"objects": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}]},
            ):
                answered = await editor.post(PATH, json={**OWN, **change})
                assert answered.status_code == 403, (change, answered.text)
        await world.user.delete(DEPLOYMENTS, SECRET, "other")  # the invariants of worlds know workloads of `default`
        await world.settle()


@pytest.mark.slow("a fleet with recorded decisions, and a replay of them")
async def test_a_replay_shows_a_member_of_a_project_no_decision_from_before_it(tmp_path: Path) -> None:
    """Nor can he ask with a policy of his own whether a cluster of others exists."""
    async with a_world_without_pods(members=("east", "west")) as world:
        await with_records(world)
        await world.create(PROJECTS, a_project("east"))
        await world.until_replicas("web", {"east": 4})
        await world.settle()
        async with tenants(tmp_path, registry=world.registry, listed=listed(world)) as host:
            await served(world, host)
            asked = {**OWN, "objects": [a_policy({"east": 3, "west": 1}, name="mine")]}
            mine = await (await host.client("editor")).post(PATH, json=asked)
            assert mine.status_code == 200, mine.text
            assert '"west":2' in (await (await host.root()).post(PATH, json=asked)).text
            assert mine.json()["decisions"] == 1
            assert "west" not in mine.text
            assert "2 clusters" not in mine.text
        await world.user.delete(DEPLOYMENTS, SECRET, "other")
        await world.settle()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "since"),
        ({"since": "yesterday"}, "since"),
        ({"since": "2026-01-01T00:00:00"}, "time zone"),
        ({**SINCE, "namespace": "../x"}, "namespace"),
        ({**SINCE, "objects": ["x"]}, "objects"),
        ({**SINCE, "objects": [{"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}}]}, "Secret"),
        ({**SINCE, "withoutClusters": ["nowhere"]}, "nowhere"),
        ({**SINCE, "priceList": {}}, "priceList"),
    ],
)
async def test_a_request_that_is_wrong_names_the_field(tmp_path: Path, body: Object, says: str) -> None:
    async with a_world_without_pods(members=("east",)) as world:
        await world.create(
            CLUSTER_PROPAGATION_POLICIES,
            {**a_policy({"east": 1}), "kind": "ClusterPropagationPolicy", "metadata": {"name": "all"}},
        )
        await world.create(DEPLOYMENTS, a_deployment("web", 1))
        await world.settle()
        async with tenants(tmp_path, registry=world.registry, listed=listed(world)) as host:
            await served(world, host)
            answered = await (await host.root()).post(PATH, json=body)
            assert answered.status_code == 400, answered.text
            assert says in answered.json()["message"]


async def test_a_replay_ends_in_time() -> None:
    asked = ReplayRequest(since=datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(ServiceUnavailable, match="choose a shorter time"):
        await compute(asked, None, [], time_s_max=0.01)


@pytest.mark.slow("a process of its own with much to read")
async def test_a_replay_has_a_limit_of_memory() -> None:
    asked = ReplayRequest(since=datetime(2026, 1, 1, tzinfo=UTC))
    large = Chunk(1, 1, 0, 1, 1, bytes(64 << 20))
    with pytest.raises(BadRequest, match="more than 128 MiB of memory; choose a later time"):
        await compute(asked, None, [large], memory_bytes_max=128 << 20)


async def test_records_after_the_end_of_a_replay_are_not_read() -> None:
    journal = MemoryJournal()
    journal.chunks.extend(Chunk(number, 1, number * 100, number * 100 + 99, 1, bytes(1 << 22)) for number in range(40))
    assert [chunk.segment for chunk in await _read(journal, 0, 250)] == [0, 1, 2]
    with pytest.raises(BadRequest, match="larger than 64 MiB"):
        await _read(journal, 0, None)


def a_chunk(segment: int, namespace: str, size: int = 0) -> Chunk:
    """Return a chunk with a decision in a namespace, and bytes that do not compress."""
    noise = random.Random(segment).randbytes(size).hex().encode()
    line = b'{"type":"d","key":["%s","web"],"at_us":1,"x":"%s"}' % (namespace.encode(), noise)
    return Chunk(segment, 1, segment * 100, segment * 100 + 99, 1, compress([line]))


async def test_a_tenant_keeps_only_the_records_of_the_time_in_which_he_has_decisions() -> None:
    journal = MemoryJournal()
    owners = ("other", "other", "mine", "other", "mine", "other", "mine-too")
    journal.chunks.extend(a_chunk(number, owner) for number, owner in enumerate(owners))
    assert [chunk.segment for chunk in await _read_own(journal, 0, None, "mine")] == [2, 3, 4]
    assert [chunk.segment for chunk in await _read_own(journal, 0, 250, "mine")] == [2]
    assert await _read_own(journal, 0, None, "nothing") == []
    assert len(await _read(journal, 0, None)) == len(owners)


@pytest.mark.slow("30 MB of records")
async def test_a_tenant_makes_the_host_hold_fewer_records_than_an_operator() -> None:
    journal = MemoryJournal()
    journal.chunks.extend(a_chunk(number, "mine" if number == 9 else "other", 3 << 20) for number in range(10))
    assert [chunk.segment for chunk in await _read_own(journal, 0, None, "mine")] == [9]
    journal.chunks[0] = a_chunk(0, "mine")
    with pytest.raises(BadRequest, match="larger than 16 MiB; choose a later time"):
        await _read_own(journal, 0, None, "mine")
    assert len(await _read(journal, 0, None)) == 10


async def test_the_process_of_a_tenant_has_less_memory() -> None:
    asked = ReplayRequest(since=datetime(2026, 1, 1, tzinfo=UTC), namespace="mine")
    assert (await compute(asked, Own([("apps", "Deployment")], ""), [], memory_bytes_max=OWN_MEMORY))["decisions"] == 0


def test_the_worker_answers_with_the_problem_of_records_that_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("no records")
    order = {
        "records": str(tmp_path / "records"),
        "since": SINCE["since"],
        "until": None,
        "namespace": "",
        "kinds": None,
        "project": "",
    }
    more: Object = {"objects": [], "withoutClusters": [], "addClusters": [], "profile": ""}
    with pytest.raises(Exception, match="has no records"):
        answer({**order, **more})
