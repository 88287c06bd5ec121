"""The background controllers: garbage collection, namespaces, expiry of Events."""

import asyncio
from datetime import timedelta

import pytest
from tests.conformance.registry.conftest import Api, a_config_map, a_definition, a_widget

from federation.apiserver.registry.registry import Registry

Object = dict


def owned_by(*owners: Object, block: bool = False, name: str = "child", **metadata: object) -> Object:
    references = [
        {
            "apiVersion": owner.get("apiVersion", "v1"),
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({"blockOwnerDeletion": True} if block else {}),
        }
        for owner in owners
    ]
    return a_config_map(name, ownerReferences=references, **metadata)


async def settled(api: Api) -> None:
    """Let the loops finish what they have heard of."""
    for _ in range(60):
        await api.clock.advance(0.05)


def gone(api: Api, name: str, namespace: str = "default"):
    async def check() -> bool:
        return not await api.exists("configmaps", name, namespace)

    return check


async def test_dependents_go_after_their_owner(running: Api) -> None:
    owner = await running.create("configmaps", a_config_map("owner"))
    await running.create("configmaps", owned_by(owner))
    await settled(running)
    assert await running.exists("configmaps", "child")
    await running.delete("configmaps", "owner")
    await running.eventually(gone(running, "child"))


async def test_chains_are_collected(running: Api) -> None:
    a = await running.create("configmaps", a_config_map("a"))
    b = await running.create("configmaps", owned_by(a, name="b"))
    await running.create("configmaps", owned_by(b, name="c"))
    await running.delete("configmaps", "a")
    await running.eventually(gone(running, "c"))
    assert not await running.exists("configmaps", "b")


async def test_a_dependent_of_an_absent_owner_is_collected(running: Api) -> None:
    ghost = {"kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    await running.create("configmaps", owned_by(ghost))
    await running.eventually(gone(running, "child"))


async def test_another_object_of_the_owners_name_is_not_the_owner(running: Api) -> None:
    await running.create("configmaps", a_config_map("owner"))
    pretender = {"kind": "ConfigMap", "metadata": {"name": "owner", "uid": "another-uid"}}
    await running.create("configmaps", owned_by(pretender))
    await running.eventually(gone(running, "child"))
    assert await running.exists("configmaps", "owner")


async def test_one_living_owner_is_enough_and_the_dead_reference_goes(running: Api) -> None:
    a = await running.create("configmaps", a_config_map("a"))
    b = await running.create("configmaps", a_config_map("b"))
    await running.create("configmaps", owned_by(a, b))
    await running.delete("configmaps", "a")

    async def has_one_owner() -> bool:
        child = await running.get("configmaps", "child")
        return [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["b"]

    await running.eventually(has_one_owner)


async def test_an_owner_of_an_unknown_kind_deletes_nothing(running: Api) -> None:
    await running.create(
        "configmaps",
        owned_by({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}}),
    )
    await settled(running)
    await running.clock.advance(120)
    await settled(running)
    assert await running.exists("configmaps", "child")


async def test_it_is_judged_when_the_kind_is_served(running: Api) -> None:
    await running.create(
        "configmaps",
        owned_by({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}}),
    )
    await settled(running)
    await running.create("customresourcedefinitions", a_definition())
    await running.eventually(gone(running, "child"))


async def test_custom_resources_own(running: Api) -> None:
    await running.create("customresourcedefinitions", a_definition())
    owner = await running.create("widgets", a_widget())
    await running.create("configmaps", owned_by(owner))
    await settled(running)
    assert await running.exists("configmaps", "child")
    await running.delete("widgets", "w")
    await running.eventually(gone(running, "child"))


async def test_foreground_deletion_waits_for_blocking_dependents(running: Api) -> None:
    owner = await running.create("configmaps", a_config_map("owner"))
    await running.create("configmaps", owned_by(owner, block=True, finalizers=["example.com/hold"]))
    await settled(running)
    await running.delete("configmaps", "owner", propagation_policy="Foreground")

    async def child_is_terminating() -> bool:
        return "deletionTimestamp" in (await running.get("configmaps", "child"))["metadata"]

    await running.eventually(child_is_terminating)
    await settled(running)
    assert await running.exists("configmaps", "owner")
    await running.patch("configmaps", "child", {"metadata": {"finalizers": None}})
    await running.eventually(gone(running, "owner"))
    assert not await running.exists("configmaps", "child")


async def test_foreground_deletion_does_not_wait_for_others(running: Api) -> None:
    owner = await running.create("configmaps", a_config_map("owner"))
    await running.create("configmaps", owned_by(owner, finalizers=["example.com/hold"]))
    await settled(running)
    await running.delete("configmaps", "owner", propagation_policy="Foreground")
    await running.eventually(gone(running, "owner"))


async def test_foreground_deletion_without_dependents_ends_at_once(running: Api) -> None:
    await running.create("configmaps", a_config_map("owner"))
    await running.delete("configmaps", "owner", propagation_policy="Foreground")
    await running.eventually(gone(running, "owner"))


async def test_foreground_deletion_is_not_blocked_by_a_circle(running: Api) -> None:
    owner = await running.create("configmaps", a_config_map("owner"))
    child = await running.create("configmaps", owned_by(owner, block=True))
    circle = owned_by(child, block=True)["metadata"]["ownerReferences"]
    await running.patch("configmaps", "owner", {"metadata": {"ownerReferences": circle}})
    await settled(running)
    await running.delete("configmaps", "owner", propagation_policy="Foreground")
    await running.eventually(gone(running, "owner"))
    await running.eventually(gone(running, "child"))


async def test_a_cycle_is_broken_when_the_index_lags_behind_the_deletion(api: Api) -> None:
    owner = await api.create("configmaps", a_config_map("owner"))
    child = await api.create("configmaps", owned_by(owner, block=True))
    circle = owned_by(child, block=True)["metadata"]["ownerReferences"]
    await api.patch("configmaps", "owner", {"metadata": {"ownerReferences": circle}})
    collector = api.registry._collector
    for entry in (await api.registry.store.list("/")).entries:
        collector._index.record(entry.key, entry.value)
    await api.delete("configmaps", "owner", propagation_policy="Foreground")
    key = next(e.key for e in (await api.registry.store.list("/")).entries if e.key.endswith("/child"))
    await collector.process(key)
    references = (await api.get("configmaps", "child"))["metadata"]["ownerReferences"]
    assert [reference["blockOwnerDeletion"] for reference in references] == [False]


async def test_orphans_live_on_without_the_reference(running: Api) -> None:
    owner = await running.create("configmaps", a_config_map("owner"))
    await running.create("configmaps", owned_by(owner))
    await settled(running)
    await running.delete("configmaps", "owner", propagation_policy="Orphan")
    await running.eventually(gone(running, "owner"))
    child = await running.get("configmaps", "child")
    assert not child["metadata"].get("ownerReferences")


@pytest.mark.every_store
async def test_deletions_while_the_collector_was_stopped_are_processed(api: Api) -> None:
    owner = await api.create("configmaps", a_config_map("owner"))
    await api.create("configmaps", owned_by(owner))
    await api.delete("configmaps", "owner")
    task = asyncio.create_task(api.registry.run())
    await api.eventually(gone(api, "child"))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_system_namespaces_exist_from_the_start(api: Api) -> None:
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= set(await api.names("namespaces"))


@pytest.mark.every_store
async def test_starting_again_creates_nothing(api: Api) -> None:
    before = await api.registry.store.revision()
    await Registry(api.registry.store, clock=api.clock).start()
    assert await api.registry.store.revision() == before


async def test_a_namespace_is_active_and_labelled(api: Api) -> None:
    made = await api.create("namespaces", {"metadata": {"name": "team"}})
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


async def test_a_namespace_gets_a_service_account(running: Api) -> None:
    await running.create("namespaces", {"metadata": {"name": "team"}})

    async def has_account() -> bool:
        return await running.exists("serviceaccounts", "default", "team")

    await running.eventually(has_account)


@pytest.mark.every_store
async def test_a_deleted_namespace_takes_its_content_with_it(running: Api) -> None:
    await running.create("namespaces", {"metadata": {"name": "team"}})
    for index in range(3):
        await running.create("configmaps", a_config_map(f"c{index}"), "team")
    answer, is_gone = await running.delete("namespaces", "team")
    assert not is_gone
    assert answer["status"]["phase"] == "Terminating"

    async def ended() -> bool:
        return not await running.exists("namespaces", "team")

    await running.eventually(ended)
    assert await running.names("configmaps", "team") == []
    await settled(running)
    assert await running.names("serviceaccounts", "team") == []


async def test_a_namespace_reports_the_finalizers_that_it_waits_for(running: Api) -> None:
    await running.create("namespaces", {"metadata": {"name": "team"}})
    await running.create("configmaps", a_config_map("held", finalizers=["example.com/hold"]), "team")
    await running.delete("namespaces", "team")

    async def says_so() -> bool:
        conditions = (await running.get("namespaces", "team"))["status"].get("conditions", [])
        return any("configmaps. has 1 resource instances" in condition["message"] for condition in conditions)

    await running.eventually(says_so)
    await running.patch("configmaps", "held", {"metadata": {"finalizers": None}}, "team")

    async def ended() -> bool:
        return not await running.exists("namespaces", "team")

    await running.eventually(ended)


@pytest.mark.every_store
async def test_a_namespace_that_was_terminating_is_finished_after_a_restart(api: Api) -> None:
    await api.create("namespaces", {"metadata": {"name": "team"}})
    await api.create("configmaps", a_config_map(), "team")
    await api.delete("namespaces", "team")
    task = asyncio.create_task(api.registry.run())

    async def ended() -> bool:
        return not await api.exists("namespaces", "team")

    await api.eventually(ended)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.every_store
async def test_events_expire_an_hour_after_their_last_write(running: Api) -> None:
    event = {"involvedObject": {"kind": "Pod", "name": "p"}, "reason": "Made"}
    for name in ("old", "renewed"):
        await running.create("events", {"metadata": {"name": name}, **event})
    await settled(running)
    await running.clock.advance(timedelta(minutes=40).total_seconds())
    await running.patch("events", "renewed", {"count": 2})
    for _ in range(60):
        await running.clock.advance(30)

    async def only_renewed() -> bool:
        return await running.names("events") == ["renewed"]

    await running.eventually(only_renewed)
    for _ in range(60):
        await running.clock.advance(30)

    async def none() -> bool:
        return await running.names("events") == []

    await running.eventually(none)


@pytest.mark.every_store
async def test_old_events_expire_after_a_restart(api: Api) -> None:
    event = {"involvedObject": {"kind": "Pod", "name": "p"}, "lastTimestamp": "2025-12-31T22:00:00Z"}
    await api.create("events", {"metadata": {"name": "old"}, **event})
    task = asyncio.create_task(api.registry.run())

    async def ended() -> bool:
        return not await api.exists("events", "old")

    try:
        await api.eventually(ended)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.every_store
@pytest.mark.parametrize("policy", ["Background", "Foreground"])
async def test_many_dependents_are_collected(running: Api, policy: str) -> None:
    owner = await running.create("configmaps", a_config_map("owner"))
    for index in range(30):
        await running.create("configmaps", owned_by(owner, name=f"child-{index}", block=True))
    await running.delete("configmaps", "owner", propagation_policy=policy)

    async def all_gone() -> bool:
        return await running.names("configmaps") == []

    await running.eventually(all_gone)
