"""Caches of the members: a member that hangs delays no other, and one that does not answer keeps its cache."""

import pytest
from tests.unit.runtime.conftest import FaultyClient

from federation.api import names
from federation.apimachinery.errors import ClusterUnreachable
from federation.apimachinery.resources import CONFIGMAPS, NODES, PODS, SECRETS, Resource
from federation.client.pool import ClusterPool
from federation.runtime.members import Members

MANAGED = {names.MANAGED_LABEL: "true"}


@pytest.fixture
async def clusters(new_server) -> dict[str, FaultyClient]:
    return {name: FaultyClient(await new_server()) for name in ("m1", "m2")}


@pytest.fixture
async def pool(clusters, clock):
    pool = ClusterPool(clock=clock)
    for name, client in clusters.items():
        pool.set_transport(name, client.transport)
    return pool


@pytest.fixture
def members(pool, clock) -> Members:
    return Members(pool, clock=clock)


def cached_names(members: Members, cluster: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in members.informer(cluster, CONFIGMAPS).list()]


async def test_only_managed_objects_are_cached_per_cluster(members, clusters, start, settle, a_configmap) -> None:
    await clusters["m1"].create(CONFIGMAPS, a_configmap("mine", labels=MANAGED))
    await clusters["m1"].create(CONFIGMAPS, a_configmap("theirs"))
    start(members.run())
    members.add_cluster("m1")
    members.add_cluster("m1")
    members.ensure_informer(CONFIGMAPS)
    members.add_cluster("m2")
    await settle()
    assert members.clusters == ["m1", "m2"]
    assert "m1" in members
    assert cached_names(members, "m1") == ["mine"]
    cached = members.get_cached("m1", CONFIGMAPS, "default", "mine")
    assert "managedFields" not in cached["metadata"]
    assert members.get_cached("m2", CONFIGMAPS, "default", "mine") is None
    assert members.is_synced("m2", CONFIGMAPS)
    assert not members.is_synced("m2", SECRETS)
    assert not members.is_synced("m3", CONFIGMAPS)
    assert members.informer("m3", CONFIGMAPS) is None


async def test_handlers_get_events_of_every_cluster_and_cached_objects(
    members, clusters, start, settle, a_configmap
) -> None:
    await clusters["m1"].create(CONFIGMAPS, a_configmap("early", labels=MANAGED))
    start(members.run())
    members.ensure_informer(CONFIGMAPS)
    members.add_cluster("m1")
    members.add_cluster("m2")
    await settle()
    heard: list[tuple] = []
    synced: list[tuple] = []
    members.add_handler(
        lambda cluster, resource, old, new: heard.append((cluster, resource.plural, bool(old), bool(new)))
    )
    members.add_sync_listener(lambda cluster, resource: synced.append((cluster, resource.plural)))
    assert heard == [("m1", "configmaps", False, True)]
    assert sorted(synced) == [("m1", "configmaps"), ("m2", "configmaps")]
    await clusters["m2"].create(CONFIGMAPS, a_configmap("late", labels=MANAGED))
    await clusters["m1"].delete(CONFIGMAPS, "early", "default")
    await settle()
    assert sorted(heard[1:]) == [("m1", "configmaps", True, False), ("m2", "configmaps", False, True)]
    synced.clear()
    members.ensure_informer(SECRETS)
    await settle()
    assert sorted(synced) == [("m1", "secrets"), ("m2", "secrets")]


async def test_a_dead_cluster_is_not_synced_and_the_others_are(members, clusters, clock, start, settle) -> None:
    clusters["m1"].fail(ClusterUnreachable("no route"))
    start(members.run())
    members.ensure_informer(CONFIGMAPS)
    members.add_cluster("m1")
    members.add_cluster("m2")
    await settle()
    assert not members.is_synced("m1", CONFIGMAPS)
    assert members.is_synced("m2", CONFIGMAPS)
    clusters["m1"].fail(None)
    await clock.advance(40)
    assert members.is_synced("m1", CONFIGMAPS)


async def test_a_recovered_cluster_is_watched_at_once(members, clusters, pool, clock, start, settle) -> None:
    clusters["m1"].fail(ClusterUnreachable("no route"))
    start(members.run())
    for resource in (CONFIGMAPS, SECRETS):
        members.ensure_informer(resource)
    members.add_cluster("m1")
    await settle()
    await clock.advance(300)
    clusters["m1"].fail(None)
    await pool.client("m1").raw("GET", "/healthz")
    await settle()
    assert members.is_synced("m1", CONFIGMAPS)
    assert members.is_synced("m1", SECRETS)


async def test_removal_of_a_cluster_sends_no_delete_events(members, clusters, start, settle, a_configmap) -> None:
    await clusters["m1"].create(CONFIGMAPS, a_configmap("mine", labels=MANAGED))
    start(members.run())
    members.ensure_informer(CONFIGMAPS)
    members.add_cluster("m1")
    await settle()
    heard: list[str] = []
    members.add_handler(lambda cluster, resource, old, new: heard.append("delete" if new is None else "add"))
    discarded: list[tuple[Resource, list[tuple[str, str]]]] = []
    members.add_discard_listener(lambda resource, shown: discarded.append((resource, list(shown))))
    members.remove_cluster("m1")
    members.remove_cluster("m1")
    await settle()
    assert heard == ["add"]
    assert discarded == [(CONFIGMAPS, [("default", "mine")])]
    assert members.clusters == []
    assert not members.is_synced("m1", CONFIGMAPS)
    members.add_cluster("m1")
    await settle()
    assert members.get_cached("m1", CONFIGMAPS, "default", "mine") is not None


async def test_informers_are_counted(members, start, settle) -> None:
    start(members.run())
    members.add_cluster("m1")
    members.ensure_informer(CONFIGMAPS)
    members.ensure_informer(CONFIGMAPS)
    members.release_informer(CONFIGMAPS)
    await settle()
    assert members.is_synced("m1", CONFIGMAPS)
    members.release_informer(CONFIGMAPS)
    assert members.informer("m1", CONFIGMAPS) is None
    members.release_informer(CONFIGMAPS)
    members.ensure_informer(CONFIGMAPS)
    await settle()
    assert members.is_synced("m1", CONFIGMAPS)


async def test_another_cluster_behind_the_name_is_listed_again(
    members, pool, new_server, clusters, clock, start, settle, a_configmap
) -> None:
    await clusters["m1"].create(CONFIGMAPS, a_configmap("old", labels=MANAGED))
    start(members.run())
    members.ensure_informer(CONFIGMAPS)
    members.add_cluster("m1")
    await settle()
    other = await new_server()
    await other.create(CONFIGMAPS, a_configmap("new", labels=MANAGED))
    pool.set_transport("m1", other.transport)
    await settle()
    await clock.advance(1)
    assert cached_names(members, "m1") == ["new"]


async def test_nodes_and_pods_are_watched_only_on_request(members, clusters, start, settle) -> None:
    heard: list[tuple[str, str]] = []
    members.add_capacity_handler(lambda cluster, resource, old, new: heard.append((cluster, resource.plural)))
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "4"}, "images": [{"names": ["big"]}]},
    }
    await clusters["m1"].create(NODES, node)
    start(members.run())
    members.add_cluster("m1")
    assert members.capacity("m1") is None
    members.ensure_capacity_informers("m1")
    members.ensure_capacity_informers("m1")
    members.ensure_capacity_informers("unknown")
    await settle()
    capacity = members.capacity("m1")
    assert capacity.are_current
    assert (capacity.nodes.resource, capacity.waiting.resource) == (NODES, PODS)
    assert "images" not in capacity.nodes.list()[0]["status"]
    assert heard == [("m1", "nodes")]


async def test_informers_requested_before_run_start_with_it(members, start, settle) -> None:
    synced: list[str] = []
    members.add_sync_listener(lambda cluster, resource: synced.append(cluster))
    members.ensure_informer(CONFIGMAPS)
    members.add_cluster("m1")
    await settle()
    assert not members.is_synced("m1", CONFIGMAPS)
    start(members.run())
    await settle()
    assert synced == ["m1"]
