"""What a member is asked about an object that is gone, and what its events tell."""

from typing import Any

import pytest
from tests.support.member_world import Line

from federation.api import names
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import Forbidden, InternalError, NotFound
from federation.apimachinery.resources import EVENTS, JOBS, NAMESPACES, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client, Request
from federation.client.local import LocalClient
from federation.delivery.members.ends import find_end
from federation.delivery.members.operations import Outcome
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.status import ClusterStatus

KEY = MemberKey("m1", JOBS, "default", "once")
UNKNOWN = Outcome(ClusterStatus.OK)


class Member(Line):
    """A member that answers a verb on a plural with an error."""

    def __init__(self) -> None:
        clock = ManualClock()
        registry = Registry(MemoryStore(clock=clock), clock=clock)
        super().__init__(registry, clock)
        self.admin, self.client = LocalClient(registry), Client(self)
        self.errors: dict[tuple[str, str], Exception] = {}

    async def request(self, request: Request) -> Object:
        if (error := self.errors.get((request.verb, request.resource.plural))) is not None:
            raise error
        return await super().request(request)

    async def tells(self, name: str, reason: str, uid: str = "u1", **times: Any) -> None:
        about = {"kind": "Job", "namespace": "default", "name": KEY.name, "uid": uid}
        event = {"metadata": {"name": name, "namespace": "default"}, "involvedObject": about, "reason": reason, **times}
        await self.admin.create(EVENTS, {"apiVersion": "v1", "kind": "Event", **event})


@pytest.fixture
async def member() -> Member:
    member = Member()
    await member.admin.create(NAMESPACES, {"metadata": {"name": "default"}})
    return member


@pytest.mark.parametrize(("reason", "succeeded"), [("Completed", True), ("BackoffLimitExceeded", False)])
async def test_the_newest_event_about_the_end_of_this_object_counts(
    member: Member, reason: str, succeeded: bool
) -> None:
    await member.tells("other", "Completed", uid="u2", lastTimestamp="2026-01-01T09:00:00Z")
    await member.tells("start", "SuccessfulCreate", lastTimestamp="2026-01-01T09:00:00Z")
    assert await find_end(member.client, KEY, "u1") == UNKNOWN
    await member.tells("early", "Completed", lastTimestamp="2026-01-01T07:00:00Z")
    await member.tells("late", reason, lastTimestamp="2026-01-01T08:00:00Z")
    told = {"succeeded": succeeded, "time": "2026-01-01T08:00:00Z"}
    assert await find_end(member.client, KEY, "u1") == Outcome(ClusterStatus.FINISHED, told)


async def test_an_event_of_a_series_or_without_a_time_counts_too(member: Member) -> None:
    await member.tells("plain", "Completed")
    found = (await find_end(member.client, KEY, "u1")).object
    assert found is not None
    assert found["time"] == (await member.admin.get(EVENTS, "plain", "default"))["metadata"]["creationTimestamp"]
    reporter = {"reportingComponent": "job-controller", "reportingInstance": "1", "action": "End", "type": "Normal"}
    await member.tells("series", "Completed", eventTime="2099-01-01T00:00:00.000000Z", **reporter)
    found = (await find_end(member.client, KEY, "u1")).object
    assert found is not None
    assert found["time"] == "2099-01-01T00:00:00.000000Z"


@pytest.mark.parametrize("is_ours", [True, False])
async def test_an_object_of_ours_that_is_there_has_not_ended(member: Member, is_ours: bool) -> None:
    labels = {names.MANAGED_LABEL: "true"} if is_ours else {}
    container = {"name": "a", "image": "a"}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    metadata = {"name": KEY.name, "namespace": "default", "labels": labels}
    job = await member.admin.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    await member.tells("end", "Completed", lastTimestamp="2026-01-01T08:00:00Z")
    outcome = await find_end(member.client, KEY, "u1")
    if is_ours:
        assert outcome.status is ClusterStatus.WAITING_FOR_REMOVAL
        assert outcome.object is not None
        assert outcome.object["metadata"]["uid"] == job["metadata"]["uid"]
    else:
        assert outcome.status is ClusterStatus.FINISHED


@pytest.mark.parametrize(
    ("call", "error", "outcome"),
    [
        (("list", "events"), Forbidden("no"), UNKNOWN),
        (("list", "events"), NotFound("no"), UNKNOWN),
        (
            ("list", "events"),
            InternalError("broken"),
            Outcome(ClusterStatus.RETRIEVAL_FAILED, message="its events cannot be listed: broken"),
        ),
        (("get", "jobs"), InternalError("broken"), Outcome(ClusterStatus.RETRIEVAL_FAILED, message="broken")),
    ],
)
async def test_a_member_that_lets_us_list_no_events_has_none_and_another_problem_is_reported(
    member: Member, call: tuple[str, str], error: Exception, outcome: Outcome
) -> None:
    await member.tells("end", "Completed", lastTimestamp="2026-01-01T08:00:00Z")
    member.errors[call] = error
    assert await find_end(member.client, KEY, "u1") == outcome
