"""Triggers as a table, and the view over a real registry: one key for both kinds, own writes, filtered events."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.federatedtype import from_config
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import Conflict
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import PatchType
from federation.client.local import LocalClient
from federation.runtime.controller import Key
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers
from federation.runtime.subscription import Subscription, Triggers

WEB, NAMESPACE = Key("default", "web-deployments.apps"), Key("", "shop-namespaces")


def a_federated(key: Key = WEB, **metadata: Any) -> Object:
    template = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    resource = FEDERATED_OBJECTS if key.namespace else CLUSTER_FEDERATED_OBJECTS
    scope = {"namespace": key.namespace} if key.namespace else {}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": key.name, **scope, **metadata},
        "spec": {"template": template},
    }


def changed(**metadata: Any) -> tuple[Object, Object]:
    return a_federated(generation=1, uid="u"), a_federated(**{"generation": 1, "uid": "u", **metadata})


def edited(controller: str) -> Object:
    federated = a_federated()
    federated["spec"]["placements"] = [{"controller": controller, "placement": []}]
    return federated


Event = tuple[Object | None, Object | None]


def admitted(triggers: Triggers, *events: Event) -> list[Event]:
    found: list[Event] = []
    subscription = Subscription(lambda old, new: found.append((old, new)), triggers)
    for event in events:
        subscription.handle(*event)
    return found


@pytest.mark.parametrize(
    ("triggers", "event", "expected"),
    [
        (Triggers(), changed(generation=2), True),
        (Triggers(generation=False), changed(generation=2), False),
        (Triggers(), changed(uid="v"), True),
        (Triggers(), changed(resourceVersion="2"), False),
        (Triggers(labels=True), changed(labels={"a": "b"}), True),
        (Triggers(), changed(labels={"a": "b"}), False),
        (Triggers(annotations=True), changed(annotations={"a": "b"}), True),
        (Triggers(annotations={"a"}), changed(annotations={"a": "b"}), True),
        (Triggers(annotations={"a"}), changed(annotations={"c": "d"}), False),
        (Triggers(finalizers=True), changed(finalizers=["f"]), True),
        (Triggers(owner_references=True), changed(ownerReferences=[]), True),
        (Triggers(), changed(deletionTimestamp="now"), True),
        (Triggers(deletion=False), changed(deletionTimestamp="now", generation=2), False),
        (Triggers(generation=False, template=True), changed(generation=2), False),
        (
            Triggers(status=lambda f: f.get("status")),
            ({**a_federated(), "status": {}}, a_federated(generation=1)),
            True,
        ),
        (Triggers(), (None, a_federated()), True),
        (Triggers(added=False), (None, a_federated()), False),
        (Triggers(added=False), (a_federated(), None), True),
        (Triggers(annotations=True), changed(annotations={names.PENDING_CONTROLLERS: "[]"}), False),
        (Triggers(generation=False, entries_of="me"), (a_federated(), edited("me")), True),
        (Triggers(generation=False, entries_of="me"), (a_federated(), edited("other")), False),
    ],
)
def test_a_subscription_admits_only_what_its_triggers_declare(triggers: Triggers, event: Event, expected: bool) -> None:
    assert admitted(triggers, event) == ([event] if expected else [])


def is_due(federated: Object) -> bool:
    return bool(federated["metadata"].get("annotations", {}).get("pending", "me") == "me")


def is_pending(federated: Object) -> bool:
    return bool(federated["metadata"].get("annotations", {}).get("pending") == "me")


def at(pending: str, generation: int = 1) -> Object:
    return a_federated(generation=generation, uid="u", annotations={"pending": pending} if pending else {})


PIPELINE = Triggers(is_due=is_due, is_pending=is_pending)


def test_an_object_is_admitted_when_the_controller_gets_to_the_head_of_the_pipeline() -> None:
    steps = [(at(""), at("other")), (at("other"), at("me")), (at("me"), at(""))]
    assert admitted(PIPELINE, *steps) == [steps[1]]


def test_changes_of_an_object_that_is_not_due_are_admitted_as_one_when_it_becomes_due() -> None:
    steps = [(at(""), at("other", 2)), (at("other", 2), at("other", 3)), (at("other", 3), at("", 3))]
    assert admitted(PIPELINE, *steps) == [steps[2]]


def test_an_object_that_passes_through_other_stages_unchanged_is_not_admitted() -> None:
    assert admitted(PIPELINE, (at(""), at("other")), (at("other"), at(""))) == []


def test_an_object_that_something_else_triggered_while_it_was_not_due_is_admitted_when_it_is() -> None:
    found: list[Event] = []
    subscription = Subscription(lambda old, new: found.append((old, new)), PIPELINE)
    subscription.defer(WEB)
    subscription.handle(at(""), at("other"))
    assert found == []
    subscription.handle(at("other"), at(""))
    subscription.handle(at(""), at(""))
    assert len(found) == 1


def test_an_object_that_is_being_deleted_is_always_due() -> None:
    leaving = at("other")
    leaving["metadata"]["deletionTimestamp"] = "now"
    assert len(admitted(PIPELINE, (at("other"), leaving))) == 1


def at_revision(revision: int, label: str) -> Object:
    return a_federated(resourceVersion=str(revision), uid="u", labels={"edited": label})


FIRST, OURS, FOREIGN, OURS_AGAIN = (at_revision(n, str(n)) for n in range(1, 5))


@pytest.mark.parametrize("is_second_last", [True, False], ids=["the second ends last", "the first ends last"])
def test_events_during_overlapping_writes_of_one_object_are_all_passed_on(is_second_last: bool) -> None:
    """Also those that arrived before the second write began; the events of both writes are dropped."""
    found: list[Event] = []
    subscription = Subscription(lambda old, new: found.append((old, new)), Triggers(labels=True))
    subscription.begin_write(WEB)
    subscription.handle(FIRST, OURS)
    subscription.handle(OURS, FOREIGN)
    subscription.begin_write(WEB)
    subscription.handle(FOREIGN, OURS_AGAIN)
    writes = [(FIRST, OURS), (FOREIGN, OURS_AGAIN)]
    for base, written in writes if is_second_last else reversed(writes):
        assert found == []
        subscription.end_write(WEB, base, written)
    assert found == [(OURS, FOREIGN)]
    subscription.handle(OURS_AGAIN, FIRST)
    assert len(found) == 2


def test_a_write_that_fails_during_another_one_releases_nothing_early() -> None:
    found: list[Event] = []
    subscription = Subscription(lambda old, new: found.append((old, new)), Triggers(labels=True))
    subscription.begin_write(WEB)
    subscription.begin_write(WEB)
    subscription.end_write(WEB, FIRST, None)
    subscription.handle(FIRST, OURS)
    subscription.end_write(WEB, FIRST, OURS)
    assert found == []


def passed_on_after(write: Event, *, is_deferred_during_write: bool) -> int:
    """Return how many events reach a controller that deferred the object, wrote it, and then sees its status change."""
    found: list[Event] = []
    subscription = Subscription(lambda old, new: found.append((old, new)), PIPELINE)
    stages = [at(""), *write]
    for revision, each in enumerate(stages, start=1):
        each["metadata"] |= {"resourceVersion": str(revision), "generation": revision}
    first, base, written = stages
    subscription.handle(first, base)  # Deferred, if the object is not due with it.
    assert found == []
    subscription.begin_write(WEB)
    if is_deferred_during_write:
        subscription.defer(WEB)
    subscription.handle(base, written)
    subscription.end_write(WEB, base, written)
    later = {**written, "metadata": {**written["metadata"], "resourceVersion": "9"}, "status": {"seen": True}}
    subscription.handle(written, later)
    return len(found)


def test_a_write_that_completes_the_pipeline_takes_what_was_deferred_with_it() -> None:
    """Otherwise the next event, often a status, would make the controller look at what it has just written."""
    assert passed_on_after((at("other"), at("")), is_deferred_during_write=False) == 0


def test_what_is_deferred_while_the_completing_write_is_under_way_is_passed_on() -> None:
    assert passed_on_after((at("other"), at("")), is_deferred_during_write=True) == 1


def test_a_write_of_an_object_that_stays_undue_takes_nothing_with_it() -> None:
    assert passed_on_after((at("other"), at("other")), is_deferred_during_write=False) == 0, "not due yet"
    found: list[Event] = []
    subscription = Subscription(lambda old, new: found.append((old, new)), PIPELINE)
    steps = [at(""), at("other"), at("other"), at("")]
    for revision, each in enumerate(steps, start=1):
        each["metadata"] |= {"resourceVersion": str(revision), "generation": min(revision, 2)}
    subscription.handle(steps[0], steps[1])
    subscription.begin_write(WEB)
    subscription.end_write(WEB, steps[1], steps[2])
    subscription.handle(steps[1], steps[2])
    subscription.handle(steps[2], steps[3])
    assert len(found) == 1


class Stage:
    """A host in memory with two federated objects, the view, and a client of somebody else."""

    def __init__(self, registry: Registry) -> None:
        client = LocalClient(registry)
        self.user = LocalClient(registry, user_agent="test")
        self.informers = Informers(client)
        types = FederatedTypes(self.informers, from_config)
        self.objects = FederatedObjects(
            client, self.informers, types, name_of=lambda name, type_: f"{name}-{type_}", clock=SystemClock()
        )
        self.events: list[Key] = []

    def record(self, old: Object | None, new: Object | None) -> None:
        metadata = (new or old or {})["metadata"]
        self.events.append(Key(metadata.get("namespace", ""), metadata["name"]))

    async def edit(self, name: str) -> Object:
        patch = {"metadata": {"labels": {"edited": name}}}
        return await self.user.patch(
            FEDERATED_OBJECTS, WEB.name, patch, patch_type=PatchType.MERGE, namespace="default"
        )

    async def until_seen(self, written: Object) -> None:
        informer = self.informers.for_resource(FEDERATED_OBJECTS)
        assert await informer.wait_for(written["metadata"]["resourceVersion"])


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    registry = Registry(MemoryStore(), clock=SystemClock())
    running = asyncio.create_task(registry.run())
    await registry.install_crds(crd_manifests())
    stage = Stage(registry)
    await stage.user.create(FEDERATED_OBJECTS, a_federated())
    await stage.user.create(CLUSTER_FEDERATED_OBJECTS, a_federated(NAMESPACE))
    following = asyncio.create_task(stage.informers.run())
    async with asyncio.timeout(60):
        await stage.objects.wait_synced()
    yield stage
    for task in (following, running):
        task.cancel()
    await asyncio.gather(following, running, return_exceptions=True)


async def test_one_key_finds_namespaced_and_cluster_scoped_objects(stage: Stage) -> None:
    assert {stage.objects.get(key)["kind"] for key in (WEB, NAMESPACE)} == {  # type: ignore[index]  # both exist
        "FederatedObject",
        "ClusterFederatedObject",
    }
    assert set(stage.objects.all_keys()) == {WEB, NAMESPACE}
    assert len(stage.objects.of_kind(DEPLOYMENTS.group_kind)) == 2
    assert [obj["metadata"]["name"] for obj in stage.objects.of_kind(DEPLOYMENTS.group_kind, "default")] == [WEB.name]
    assert stage.objects.get(Key("default", "other")) is None


async def test_a_patch_requires_its_revision_and_its_result_is_visible_at_once(stage: Stage) -> None:
    federated = stage.objects.get(WEB)
    assert federated is not None
    written = await stage.objects.patch(WEB, federated, {"metadata": {"labels": {"a": "b"}}})
    assert written is not None
    assert stage.objects.get(WEB)["metadata"]["labels"] == {"a": "b"}  # type: ignore[index]  # it exists
    with pytest.raises(Conflict):
        await stage.objects.patch(WEB, federated, {"metadata": {"labels": {"a": "c"}}})
    assert await stage.objects.patch(Key("default", "gone"), federated, {}) is None


async def test_a_writer_does_not_get_the_event_of_its_own_write_and_others_do(stage: Stage) -> None:
    others: list[Object | None] = []
    stage.objects.subscribe(stage.record, Triggers(labels=True), writer="writer")
    stage.objects.subscribe(lambda _, new: others.append(new), Triggers(labels=True))
    stage.events.clear()
    others.clear()
    written = await stage.objects.patch(
        WEB, stage.objects.get(WEB) or {}, {"metadata": {"labels": {"a": "b"}}}, writer="writer"
    )
    await stage.until_seen(written or {})
    assert (stage.events, len(others)) == ([], 1)
    await stage.until_seen(await stage.edit("afterwards"))
    assert stage.events == [WEB]


async def test_the_event_of_a_joint_write_reaches_neither_of_its_writers(stage: Stage) -> None:
    for writer in ("writer", "other"):
        stage.objects.subscribe(stage.record, Triggers(labels=True), writer=writer)
    stage.events.clear()
    patch: Object = {"metadata": {"labels": {"a": "b"}}}
    written = await stage.objects.patch(WEB, stage.objects.get(WEB) or {}, patch, writer="writer", joint="other")
    await stage.until_seen(written or {})
    assert stage.events == []
    await stage.until_seen(await stage.edit("afterwards"))
    assert stage.events == [WEB, WEB]


async def test_changes_by_others_during_a_write_are_not_lost(stage: Stage) -> None:
    """The events are held back until the write has ended, also when it fails."""
    stage.objects.subscribe(stage.record, Triggers(labels=True), writer="writer")
    stage.events.clear()
    federated = stage.objects.get(WEB) or {}
    edited = await stage.edit("meanwhile")
    with pytest.raises(Conflict):
        await stage.objects.patch(WEB, federated, {"metadata": {"labels": {"a": "b"}}}, writer="writer")
    await stage.until_seen(edited)
    assert stage.events == [WEB]


async def test_a_controller_that_completes_its_own_patch_gets_later_events(stage: Stage) -> None:
    stage.objects.subscribe(stage.record, Triggers(labels=True), writer="writer")
    stage.objects.complete_writes(lambda _: {"metadata": {"labels": {"completed": "true"}}}, writer="writer")
    stage.events.clear()
    written = await stage.objects.patch(
        WEB, stage.objects.get(WEB) or {}, {"metadata": {"labels": {"a": "b"}}}, writer="writer"
    )
    await stage.until_seen(written or {})
    assert stage.events == []
    await stage.until_seen(await stage.edit("afterwards"))
    assert stage.events == [WEB]


async def test_a_condition_is_written_only_when_it_differs(stage: Stage) -> None:
    for expected in (True, False):
        is_written = await stage.objects.set_condition(WEB, names.SCHEDULED, status="False", reason="Because")
        assert is_written is expected
    assert not await stage.objects.set_condition(
        Key("default", "gone"), names.SCHEDULED, status="False", reason="Because"
    )
