"""Operations on one object of a member, whose objects and answers are not what was expected."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from tests.support.member_world import Line

from federation.api import names
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import Conflict, Forbidden, RequestTimeout
from federation.apimachinery.resources import CONFIGMAPS, NAMESPACES, Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client, PatchType, Request
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.operations import MemberWriter, Outcome
from federation.delivery.rules.content import Write
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.status import ClusterStatus
from federation.planning.leftovers.evidence import Evidence, Membership, Word
from federation.planning.rendering.memberobject import Rendered

ANSWERED = Evidence(Word.ANSWER, Membership())
KEY = MemberKey("m1", CONFIGMAPS, "default", "settings")


def rendered(value: str) -> Rendered:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": {names.MANAGED_LABEL: "true"}}
    return Rendered({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}, value)


async def test_a_process_that_wakes_within_a_write_does_not_undo_what_another_leader_wrote() -> None:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    member, writer = LocalClient(registry), MemberWriter(KeptState())
    answers = [True, True]
    pool = ClusterPool(clock=clock, may_write=lambda: bool(answers) and answers.pop())
    pool.set_transport("m1", Line(registry, clock))
    client = pool.client("m1")

    async def live() -> Object:
        return await member.get(CONFIGMAPS, KEY.name, KEY.namespace)

    await member.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
    await member.create(CONFIGMAPS, rendered("1").object)
    seen = await live()
    assert (await writer.ensure(client, Write(KEY, rendered("2"), seen))).status is ClusterStatus.OK
    # The second answer is from before a pause; every later one is that another process leads.
    outcome = await writer.ensure(client, Write(KEY, rendered("1"), seen))
    assert outcome.status is ClusterStatus.UPDATE_FAILED
    assert (await live())["data"] == {"value": "2"}
    assert answers == []


class Member:
    """A member with its administrator, and a client of the federation whose line can fail."""

    def __init__(self, line: type[Line] = Line) -> None:
        self.clock = ManualClock()
        registry = Registry(MemoryStore(clock=self.clock), clock=self.clock)
        self.admin, self.line = LocalClient(registry, user_agent="admin"), line(registry, self.clock)
        self.client, self.writer = Client(self.line), MemberWriter(KeptState())

    async def begin(self, **metadata: Any) -> Object:
        """Create the namespace, and an object of the administrator's with these metadata."""
        await self.admin.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "0"}}
        created = {"name": KEY.name, "namespace": KEY.namespace, **metadata}
        return await self.admin.create(CONFIGMAPS, {**obj, "metadata": created})

    async def live(self) -> Object:
        return await self.admin.get(CONFIGMAPS, KEY.name, KEY.namespace)

    async def change(self, body: Object) -> Object:
        return await self.admin.patch(CONFIGMAPS, KEY.name, body, patch_type=PatchType.MERGE, namespace=KEY.namespace)

    async def ensure(self, value: str = "1", live: Object | None = None, **more: Any) -> Outcome:
        return await self.writer.ensure(self.client, Write(KEY, rendered(value), live, **more))


OURS = {"labels": {names.MANAGED_LABEL: "true"}}
ADOPT = {names.CONFLICT_RESOLUTION: "adopt", names.CLUSTERS_TO_ADOPT: '{"clusters": ["m1"]}'}


@pytest.mark.parametrize(
    ("metadata", "federated", "status", "adopted"),
    [
        (OURS, {}, ClusterStatus.OK, None),
        ({}, ADOPT, ClusterStatus.OK, "true"),
        (OURS, ADOPT, ClusterStatus.OK, None),
        ({}, {}, ClusterStatus.ALREADY_EXISTS, None),
        ({}, {names.CONFLICT_RESOLUTION: "adopt"}, ClusterStatus.ALREADY_EXISTS, None),
        ({}, {**ADOPT, names.CLUSTERS_TO_ADOPT: '{"clusters": ["m2"]}'}, ClusterStatus.ALREADY_EXISTS, None),
        ({}, {**ADOPT, names.CLUSTERS_TO_ADOPT: "[]"}, ClusterStatus.ALREADY_EXISTS, None),
        ({"labels": {names.MANAGED_LABEL: "false"}}, ADOPT, ClusterStatus.MANAGED_LABEL_FALSE, None),
        ({"labels": {names.MANAGED_LABEL: "other"}}, {}, ClusterStatus.ALREADY_EXISTS, None),
        ({**OURS, "annotations": {names.DERIVED_SERVICE: "x"}}, {}, ClusterStatus.ALREADY_EXISTS, None),
    ],
    ids=[
        "ours", "adopted", "ours although adoption is allowed", "not ours", "no cluster is named", "another cluster",
        "malformed", "management disabled", "another label", "only of the same name",
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_known", [False, True])
async def test_an_existing_object_is_written_only_if_it_is_ours_or_may_be_adopted(
    metadata: dict[str, Any], federated: dict[str, str], status: ClusterStatus, adopted: str | None, is_known: bool
) -> None:
    member = Member()
    live = await member.begin(**metadata)
    outcome = await member.ensure(live=live if is_known else None, federated=federated)
    assert outcome.status is status
    assert (outcome.is_ok, outcome.is_unanswered) == (status is ClusterStatus.OK, False)
    found = await member.live()
    assert found["data"] == {"value": "1" if outcome.is_ok else "0"}
    assert (found["metadata"].get("annotations") or {}).get(names.ADOPTED) == adopted
    assert bool(outcome.message) is not outcome.is_ok


async def test_a_write_of_a_kind_that_the_member_does_not_serve_says_so() -> None:
    member = Member()
    await member.begin()
    widgets = Resource("example.com", "v1", "Widget", "widgets")
    key = MemberKey("m1", widgets, KEY.namespace, KEY.name)
    widget = {**rendered("1").object, "apiVersion": "example.com/v1", "kind": "Widget"}
    for live in (None, widget):
        outcome = await member.writer.ensure(member.client, Write(key, Rendered(widget, "1"), live))
        assert outcome.status is ClusterStatus.KIND_NOT_SERVED
        assert "does not serve example.com/v1 Widget: install its CustomResourceDefinition" in outcome.message


async def test_a_write_into_a_namespace_that_is_missing_names_the_namespace() -> None:
    outcome = await Member().ensure()
    assert outcome.status is ClusterStatus.CREATION_FAILED
    assert outcome.message == 'namespaces "default" not found'


async def test_an_object_that_changed_since_it_was_read_is_read_again() -> None:
    member = Member()
    seen = await member.begin(**OURS)
    await member.change({"data": {"other": "x"}})
    outcome = await member.ensure(live=seen)
    assert outcome.status is ClusterStatus.OK
    assert (await member.live())["data"] == {"value": "1", "other": "x"}
    assert [call[0] for call in member.line.calls] == ["patch", "get", "patch"]


async def test_an_object_that_is_gone_is_created_again() -> None:
    member = Member()
    seen = await member.begin(**OURS)
    await member.admin.delete(CONFIGMAPS, KEY.name, KEY.namespace)
    assert (await member.ensure(live=seen)).status is ClusterStatus.OK
    found = await member.live()
    assert found["metadata"]["uid"] != seen["metadata"]["uid"]


async def test_another_object_of_the_name_is_not_taken_for_the_known_one() -> None:
    member = Member()
    seen = await member.begin(**OURS)
    await member.admin.delete(CONFIGMAPS, KEY.name, KEY.namespace)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": KEY.name, "namespace": KEY.namespace}}
    await member.admin.create(CONFIGMAPS, other)
    assert (await member.ensure(live=seen)).status is ClusterStatus.ALREADY_EXISTS
    assert "data" not in await member.live()


@pytest.mark.parametrize(("is_correction", "is_changed"), [(True, True), (True, False), (False, True)])
async def test_a_correction_names_the_fields_that_somebody_changed(is_correction: bool, is_changed: bool) -> None:
    member = Member()
    await member.admin.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
    written = (await member.ensure()).object
    assert written is not None
    if is_changed:
        await member.change({"data": {"value": "2"}})
    outcome = await member.ensure(live=written, is_correction=is_correction)
    assert (await member.live())["data"] == {"value": "1"}
    if not (is_correction and is_changed):
        assert outcome.correction is None
        return
    assert outcome.correction is not None
    assert [field.name for field in outcome.correction.fields] == ["data.value"]


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("value", ["1", "0"])
async def test_an_object_is_taken_over_if_equal_only_where_nothing_of_it_changes(value: str, is_known: bool) -> None:
    member = Member()
    live = await member.begin(annotations={"note": "by hand"})
    await member.change({"data": {"value": value}})
    live = await member.live()
    federated = {**ADOPT, names.CONFLICT_RESOLUTION: "adopt-if-equal"}
    outcome = await member.ensure(live=live if is_known else None, federated=federated)
    found = await member.live()
    assert found["data"] == {"value": value}
    if value == "1":
        assert outcome.status is ClusterStatus.OK
        assert found["metadata"]["annotations"][names.ADOPTED] == "true"
        return
    assert outcome.status is ClusterStatus.ALREADY_EXISTS
    assert outcome.message == "the object was in the cluster before and differs, so it is not taken over: data.value"


@pytest.mark.parametrize(("is_changed", "expected"), [(True, "2"), (False, "3")])
async def test_nothing_is_written_over_a_change_of_somebody_else_if_the_object_stops_at_drift(
    is_changed: bool, expected: str
) -> None:
    member = Member()
    await member.admin.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
    written = (await member.ensure()).object
    assert written is not None
    if is_changed:
        await member.change({"data": {"value": "2"}})
    write = Write(KEY, rendered("3"), written, stops_at_drift=True)
    outcome = await member.writer.ensure(member.client, write)
    assert (await member.live())["data"] == {"value": expected}
    assert outcome.status is (ClusterStatus.DRIFTED if is_changed else ClusterStatus.OK)
    assert outcome.message.endswith(": data.value") is is_changed


Action = Callable[[MemberWriter, Client, str], Any]
ACTIONS: dict[str, Action] = {
    "remove": lambda writer, client, uid: writer.remove(client, KEY, uid, find_evidence=lambda: ANSWERED),
    "release": lambda writer, client, uid: writer.release(client, KEY, uid),
    "confirm": lambda writer, client, uid: writer.confirm(client, KEY),
}
WAITING = ClusterStatus.WAITING_FOR_REMOVAL


@pytest.mark.parametrize(
    ("action", "state", "status"),
    [
        ("remove", "ours", WAITING),
        ("remove", "other uid", WAITING),
        ("remove", "gone", WAITING),
        ("remove", "failing", ClusterStatus.DELETION_FAILED),
        ("release", "ours", WAITING),
        ("release", "other uid", WAITING),
        ("release", "gone", WAITING),
        ("release", "failing", ClusterStatus.LABEL_REMOVAL_FAILED),
        ("confirm", "ours", WAITING),
        ("confirm", "not ours", ClusterStatus.OK),
        ("confirm", "gone", ClusterStatus.OK),
        ("confirm", "failing", ClusterStatus.RETRIEVAL_FAILED),
    ],
)
async def test_an_object_is_removed_released_or_confirmed_by_its_uid(
    action: str, state: str, status: ClusterStatus
) -> None:
    member = Member()
    annotations = {names.TEMPLATE_HASH: "h", names.SOURCE_GENERATION: "1", "a": "b"}
    metadata = {} if state == "not ours" else OURS
    uid = (await member.begin(**metadata, annotations=annotations))["metadata"]["uid"]
    if state == "gone":
        await member.admin.delete(CONFIGMAPS, KEY.name, KEY.namespace)
    if state == "failing":
        member.line.failing |= {(verb, "configmaps") for verb in ("get", "patch", "delete")}
    outcome = await ACTIONS[action](member.writer, member.client, "u" if state == "other uid" else uid)
    assert (outcome.status, outcome.is_unanswered) == (status, False)
    found = (await member.admin.list(CONFIGMAPS, KEY.namespace)).items
    assert len(found) == (0 if state == "gone" or (action, state) == ("remove", "ours") else 1)
    if (action, state) == ("release", "ours"):
        assert found[0]["metadata"]["annotations"] == {"a": "b"}
        assert names.MANAGED_LABEL not in (found[0]["metadata"].get("labels") or {})
    elif found:
        assert found[0]["metadata"]["annotations"] == annotations


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_silent_member_is_no_answer(action: str) -> None:
    member = Member()
    uid = (await member.begin(**OURS))["metadata"]["uid"]
    member.line.mode = "down"
    assert (await ACTIONS[action](member.writer, member.client, uid)).is_unanswered
    assert (await member.ensure(live=await member.live())).is_unanswered


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
async def test_a_deletion_does_not_wait_for_dependents_and_leaves_none(finalizer: str) -> None:
    member = Member()
    uid = (await member.begin(**OURS, finalizers=[finalizer]))["metadata"]["uid"]
    assert (await member.writer.remove(member.client, KEY, uid, find_evidence=lambda: ANSWERED)).status is WAITING
    assert (await member.admin.list(CONFIGMAPS, KEY.namespace)).items == []


async def test_an_object_with_a_finalizer_that_is_deleted_already_needs_no_second_deletion() -> None:
    member = Member()
    uid = (await member.begin(**OURS, finalizers=["a.io/b"]))["metadata"]["uid"]
    for _ in range(2):
        assert (await member.writer.remove(member.client, KEY, uid, find_evidence=lambda: ANSWERED)).status is WAITING
    assert (await member.live())["metadata"]["deletionTimestamp"]


class Unpinned(Line):
    """A line to a server that creates no object with a resourceVersion."""

    async def request(self, request: Request) -> Object:
        if request.verb == "apply" and request.body and orjson.loads(request.body)["metadata"].get("resourceVersion"):
            await self._pass("patch", request.resource.plural, request.name)
            raise Conflict("an object that does not exist has no resourceVersion")
        return await super().request(request)


@pytest.mark.parametrize(
    ("line", "first", "second"),
    [
        pytest.param(Line, ["patch"], ["patch"], id="a usual server"),
        pytest.param(Unpinned, ["patch", "get", "patch", "get", "patch"], ["get", "patch"], id="one that refuses pins"),
    ],
)
async def test_a_creation_asks_first_only_where_a_server_refuses_a_pinned_revision(
    line: type[Line], first: list[str], second: list[str]
) -> None:
    member = Member(line)
    await member.admin.create(NAMESPACES, {"metadata": {"name": KEY.namespace}})
    for expected in (first, second):
        member.line.calls.clear()
        assert (await member.ensure()).status is ClusterStatus.OK
        assert [verb for verb, _, _ in member.line.calls] == expected
        await member.admin.delete(CONFIGMAPS, KEY.name, KEY.namespace)


class Refusing(Line):
    """A line on which deletions end in a conflict, and then reads fail too if `reads` is an error."""

    reads: Exception | None = None

    async def request(self, request: Request) -> Object:
        if request.verb == "delete":
            raise Conflict("busy")
        if request.verb == "get" and self.reads is not None:
            raise self.reads
        return await super().request(request)


MANAGED = {"labels": {names.MANAGED_LABEL: "true"}}


@pytest.mark.parametrize(
    ("metadata", "uid", "reads", "status"),
    [
        pytest.param(MANAGED, "", None, ClusterStatus.DELETION_FAILED, id="it is still there"),
        pytest.param(MANAGED, "another", None, ClusterStatus.WAITING_FOR_REMOVAL, id="another one has its name"),
        pytest.param({}, "", None, ClusterStatus.WAITING_FOR_REMOVAL, id="it is not managed"),
        pytest.param(
            {**MANAGED, "deletionTimestamp": ""}, "", None, ClusterStatus.WAITING_FOR_REMOVAL, id="it is going already"
        ),
        pytest.param(MANAGED, "", Forbidden("no"), ClusterStatus.RETRIEVAL_FAILED, id="it cannot be read"),
        pytest.param(MANAGED, "", RequestTimeout("late"), None, id="no answer"),
    ],
)
async def test_a_deletion_that_ends_in_a_conflict_is_repeated_only_if_the_object_is_still_there(
    metadata: dict[str, Any], uid: str, reads: Exception | None, status: ClusterStatus | None
) -> None:
    member = Member(Refusing)
    is_going = "deletionTimestamp" in metadata
    kept = {key: value for key, value in metadata.items() if key != "deletionTimestamp"}
    created = await member.begin(**kept, **({"finalizers": ["example.com/hold"]} if is_going else {}))
    if is_going:
        await member.admin.delete(CONFIGMAPS, KEY.name, KEY.namespace)
    assert isinstance(member.line, Refusing)
    member.line.reads = reads
    outcome = await member.writer.remove(
        member.client, KEY, uid or created["metadata"]["uid"], find_evidence=lambda: ANSWERED
    )
    if status is None:
        assert outcome.is_unanswered
    else:
        assert (outcome.status, outcome.is_unanswered) == (status, False)
