"""What is delivered follows from a source of the host, and a source decides what the deletion of its object means."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.member_world import a_deployment
from tests.unit.delivery.host.hosting import Host, a_host

from federation.api import names
from federation.api.federatedtype import Ending, FederatedType
from federation.apimachinery.resources import DEPLOYMENTS, PERSISTENT_VOLUME_CLAIMS, Object, Resource
from federation.delivery.host.sources import Refusal, Sources
from federation.runtime.informers import Informers

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
MISSING = 'spec.template: the host has no Deployment "web"'
FOREIGN = 'metadata.ownerReferences: Deployment "web" is not the controller'


def type_of(host: Host, resource: Resource = DEPLOYMENTS) -> FederatedType:
    found = host.objects.types.for_group_kind(resource.group, resource.kind)
    assert found is not None
    return found


def owned_by(source: Object) -> list[Object]:
    metadata = source["metadata"]
    kind = {"apiVersion": source["apiVersion"], "kind": source["kind"]}
    return [{**kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}]


def sources_of(host: Host, *, is_running: bool = True) -> Sources:
    """Return sources whose caches become complete, or never do."""
    informers = host.informers if is_running else Informers(host.client, clock=host.clock)
    return Sources(replace(host.wired, informers=informers), host.kept, host.enqueued.append)


async def a_source(host: Host, obj: Object | None = None, **metadata: Any) -> Object:
    obj = obj or a_deployment("web")
    resource = DEPLOYMENTS if obj["kind"] == "Deployment" else PERSISTENT_VOLUME_CLAIMS
    created = await host.client.create(resource, {**obj, "metadata": {**obj["metadata"], **metadata}})
    informer = host.informers.for_resource(resource)
    await host.until(lambda: informer.get("default", created["metadata"]["name"]) is not None)
    return created


async def deleted(host: Host, source: Object, resource: Resource = DEPLOYMENTS) -> None:
    """Delete a source, and wait until the caches show it."""
    name, informer = source["metadata"]["name"], host.informers.for_resource(resource)
    await host.client.delete(resource, name, "default")
    await host.until(
        lambda: (found := informer.get("default", name)) is None or found["metadata"].get("deletionTimestamp")
    )


async def test_an_object_without_its_source_is_refused_and_woken_by_it_once() -> None:
    async with a_host() as host:
        sources = sources_of(host)
        key, federated = await host.federate(a_deployment("web"), "m1")
        await host.federate(a_deployment("other"), "m1")
        await host.informers.for_resource(DEPLOYMENTS).wait_synced()
        assert sources.check(key, federated, type_of(host)) == Refusal(MISSING)
        await a_source(host, a_deployment("other"))
        assert host.enqueued == [], "another object was not refused"
        source = await a_source(host)
        assert host.enqueued == [key]
        assert sources.check(key, federated, type_of(host)) == Refusal(FOREIGN)
        current = {**federated, "metadata": {**federated["metadata"], "ownerReferences": owned_by(source)}}
        assert sources.check(key, current, type_of(host)) is None
        await deleted(host, source)
        await a_source(host)
        assert host.enqueued == [key], "what was delivered is not refused any more"


async def test_a_refused_object_waits_for_another_source_and_not_for_changes_of_it() -> None:
    async with a_host() as host:
        sources = sources_of(host)
        source = await a_source(host)
        key, federated = await host.federate(a_deployment("web"), "m1")
        assert sources.check(key, federated, type_of(host)) == Refusal(FOREIGN)
        informer = host.informers.for_resource(DEPLOYMENTS)
        changed = await host.client.update(
            DEPLOYMENTS, {**source, "metadata": {**source["metadata"], "labels": {"app": "web", "changed": "yes"}}}
        )
        await host.until(lambda: informer.get("default", "web") == changed)
        await deleted(host, source)
        assert host.enqueued == []
        await a_source(host)
        assert host.enqueued == [key]
        host.kept.forget_object(key)
        await deleted(host, source)
        await a_source(host)
        assert host.enqueued == [key], "it is gone itself"


async def test_a_refusal_is_final_only_if_the_caches_are_complete_and_the_source_stays() -> None:
    async with a_host() as host:
        key, federated = await host.federate(a_deployment("web"), "m1")
        assert sources_of(host, is_running=False).check(key, federated, type_of(host)) == Refusal(
            MISSING, is_final=False
        )
        sources = sources_of(host)
        source = await a_source(host, finalizers=["example.com/hold"])
        assert sources.check(key, federated, type_of(host)) == Refusal(FOREIGN)
        await deleted(host, source)
        assert sources.check(key, federated, type_of(host)) == Refusal(FOREIGN, is_final=False), (
            "the garbage collector has removed the reference"
        )


async def test_a_source_that_was_replaced_unseen_wakes_a_refused_object() -> None:
    async with a_host() as host:
        sources = sources_of(host)
        key, federated = await host.federate(a_deployment("web"), "m1")
        sources.check(key, federated, type_of(host))
        first, second = ({"metadata": {"name": "web", "namespace": "default", "uid": uid}} for uid in "12")
        sources._on_source(type_of(host), first, first)
        sources._on_source(type_of(host), first, None)
        assert host.enqueued == []
        sources._on_source(type_of(host), first, second)
        assert host.enqueued == [key]


async def test_a_kind_that_is_not_followed_refuses_for_the_moment_and_wants_nothing() -> None:
    async with a_host() as host:
        sources = sources_of(host)
        key, federated = await host.federate(a_deployment("web"), "m1")
        type_ = type_of(host)
        unknown = replace(type_, resource=type_.resource._replace(version="v9"))
        refusal = sources.check(key, federated, unknown)
        assert refusal is not None
        assert not refusal.is_final
        assert not await sources.wants(key, federated, unknown)


async def test_objects_written_by_hand_need_no_source_but_the_right_scope() -> None:
    async with a_host() as host:
        sources, by_hand = sources_of(host), {names.HAND_WRITTEN: "true"}
        key, federated = await host.federate(a_deployment("web"), "m1", annotations=by_hand)
        assert sources.check(key, federated, type_of(host)) is None
        elsewhere = {**federated, "metadata": {**federated["metadata"], "namespace": "other"}}
        refusal = sources.check(key, elsewhere, type_of(host))
        assert refusal == Refusal("spec.template.metadata.namespace: must be the namespace of the federated object")


@pytest.mark.parametrize("is_running", [False, True], ids=["from the API server", "from the cache"])
async def test_a_source_that_lives_wants_its_federated_object(is_running: bool) -> None:
    async with a_host() as host:
        sources = sources_of(host, is_running=is_running)
        key, federated = await host.federate(a_deployment("web"), "m1")
        type_ = type_of(host)
        assert not await sources.wants(key, federated, type_), "there is none"
        source = await a_source(host)
        assert not await sources.wants(key, federated, type_), "it is of another one"
        current = {**federated, "metadata": {**federated["metadata"], "ownerReferences": owned_by(source)}}
        assert await sources.wants(key, current, type_)
        await deleted(host, source)
        assert not await sources.wants(key, current, type_)


async def test_the_source_of_data_that_is_excluded_keeps_it_in_the_members() -> None:
    async with a_host() as host:
        sources = sources_of(host)
        key, federated = await host.federate(CLAIM, "m1")
        type_ = type_of(host, PERSISTENT_VOLUME_CLAIMS)
        assert not await sources.keeps_data(key, federated, type_), "without a source the data goes with the object"
        source = await a_source(host, CLAIM, finalizers=["example.com/hold"])
        current = {**federated, "metadata": {**federated["metadata"], "ownerReferences": owned_by(source)}}
        assert await sources.keeps_data(key, current, type_)
        assert not await sources.keeps_data(key, current, replace(type_, ending=Ending.REMOVE))
        released = {**current, "metadata": {**current["metadata"], "annotations": {names.ORPHAN: "all"}}}
        assert not await sources.keeps_data(key, released, type_)
        earlier = {
            **current,
            "metadata": {**current["metadata"], "ownerReferences": [{**owned_by(source)[0], "uid": "0"}]},
        }
        assert not await sources.keeps_data(key, earlier, type_), "another claim of this name"
        await deleted(host, source, PERSISTENT_VOLUME_CLAIMS)
        assert not await sources.keeps_data(key, current, type_)


async def test_the_source_of_other_kinds_keeps_nothing() -> None:
    async with a_host() as host:
        sources, source = sources_of(host), await a_source(host)
        key, federated = await host.federate(a_deployment("web"), "m1", ownerReferences=owned_by(source))
        assert not await sources.keeps_data(key, federated, type_of(host))
