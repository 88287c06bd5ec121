"""Admission of pods when something is missing or fails: the pod must not wait, and limits must hold."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from tests.support.memberspreads import a_spread, a_subset
from tests.support.simulatedmember import a_template, a_workload, an_object

from federation.api import names
from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import (
    ApiError,
    ClusterUnreachable,
    Conflict,
    FederationError,
    RequestEntityTooLarge,
    ServiceUnavailable,
)
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import EVENTS, PODS, REPLICA_SETS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client, Request, Watch
from federation.client.local import LocalClient, LocalTransport
from federation.features.workloadspread.incluster.configurations import definitions
from federation.features.workloadspread.incluster.service import SpreadService
from federation.features.workloadspread.names import (
    EVENT_INVALID_SPREAD,
    EVENT_PATCH_POD_DELETION_COST_FAILED,
    MATCHED_WORKLOAD_SPREAD,
)
from federation.features.workloadspread.rules.ledger import parse_match


class Line(LocalTransport):
    """The connection of the service; status writes fail with `failure`, or hang, or are refused above a size."""

    failure: FederationError | None = None
    refused: FederationError | None = None
    """The answer to writes of pods."""
    hangs = False
    bytes_max = 0
    sight: asyncio.Event
    """Watches deliver nothing while it is cleared."""

    async def request(self, request: Request) -> Object:
        if request.verb == "patch" and request.resource == PODS and self.refused is not None:
            raise self.refused
        if request.subresource == "status":
            if self.hangs:
                await asyncio.get_running_loop().create_future()
            if self.failure is not None:
                raise self.failure
            if self.bytes_max and len(request.body or b"") > self.bytes_max:
                raise RequestEntityTooLarge("etcdserver: request is too large")
        return await super().request(request)

    async def stream(self, request: Request) -> Watch:  # type: ignore[override]  # a generator is a Watch
        async for batch in LocalTransport.stream(self, request):
            await self.sight.wait()
            yield batch


class World:
    """A cluster with a ReplicaSet, and the service beside it; tests send the reviews."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = Registry(MemoryStore(clock=self.clock), clock=self.clock)
        self.line = Line(self.registry)
        self.line.sight = asyncio.Event()
        self.line.sight.set()
        self.user = LocalClient(self.registry, user_agent="user")
        self.service = SpreadService(Client(self.line), clock=self.clock, cluster="east", entropy=SeededEntropy(1))
        self.owner: Object = {}

    async def begin(self, *subsets: Object, **spec: Any) -> None:
        """Create a ReplicaSet and its WorkloadSpread, and wait until the service has seen them."""
        self.owner = await self.user.create(REPLICA_SETS, a_workload(REPLICA_SETS))
        spread = a_spread(*subsets, kind="ReplicaSet", **spec)
        await self.user.create(WORKLOAD_SPREADS, {**spread, "apiVersion": WORKLOAD_SPREADS.api_version})
        await self.clock.advance(1)

    def pod(self, **metadata: Any) -> Object:
        reference = controller_reference(self.owner, REPLICA_SETS.api_version, REPLICA_SETS.kind)
        fields = {"labels": {"app": "web"}, "ownerReferences": [reference], **metadata}
        return an_object(PODS, "web-1", metadata=fields, spec=a_template()["spec"])

    async def review(self, path: str, **request: Any) -> Object:
        body = {"uid": "u-1", "namespace": "default", **request}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}
        answer = asyncio.ensure_future(self.service.answer(path, review))
        while not answer.done():
            await self.clock.advance(0.1)
        response: Object = answer.result()["response"]
        return response

    async def create(self, pod: Object | None = None, **request: Any) -> Object:
        return await self.review("/create-pod", object=self.pod() if pod is None else pod, **request)

    async def status(self) -> Object:
        found = await self.user.get(WORKLOAD_SPREADS, "web", "default")
        status: Object = found.get("status") or {}
        return status

    async def records(self, field: str) -> list[str]:
        versions = (await self.status()).get("versionedSubsetStatuses") or {}
        return [key for entry in versions.values() for status in entry for key in status.get(field) or ()]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    await world.registry.install_crds(definitions())
    tasks = [asyncio.create_task(world.registry.run()), asyncio.create_task(world.service.run())]
    await world.service.wait_synced()
    yield world
    for task in tasks:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks)


async def test_pods_of_a_workload_that_is_scaled_to_zero_count_until_they_end(world: World) -> None:
    await world.begin(a_subset("base", 2))
    match = {MATCHED_WORKLOAD_SPREAD: '{"name":"web","subset":"base"}'}
    pod = await world.user.create(PODS, world.pod(annotations=match))
    await world.user.patch(REPLICA_SETS, "web", {"spec": {"replicas": 0}}, namespace="default")
    await world.clock.advance(5)
    assert (await world.status())["subsetStatuses"][0]["missingReplicas"] == 1
    await world.user.delete(PODS, pod["metadata"]["name"], "default")
    await world.clock.advance(5)
    assert (await world.status())["subsetStatuses"][0]["missingReplicas"] == 2


async def test_a_new_pod_has_its_deletion_cost(world: World) -> None:
    await world.begin(a_subset("base", 2), a_subset("elastic"))
    answer = await world.create()
    assert any(
        operation["value"].get(names.POD_DELETION_COST) == "200"
        for operation in orjson.loads(base64.b64decode(answer["patch"]))
        if operation["path"] == "/metadata/annotations"
    )


async def test_a_pod_is_recorded_by_its_name_or_by_an_id(world: World) -> None:
    await world.begin(a_subset("base", 2))
    assert "patch" in await world.create()
    nameless = world.pod()
    nameless["metadata"] = {**nameless["metadata"], "name": "", "generateName": "web-"}
    assert "patch" in await world.create(nameless)
    records = await world.records("creatingPods")
    assert "web-1" in records
    assert len(records) == 2
    assert len(next(record for record in records if record != "web-1")) == 36


async def test_the_same_pod_is_counted_once(world: World) -> None:
    await world.begin(a_subset("base", 2))
    assert await world.create() == await world.create()
    assert await world.records("creatingPods") == ["web-1"]


@pytest.mark.parametrize("failure", [ServiceUnavailable("down"), ClusterUnreachable("gone"), ApiError("no", code=403)])
async def test_a_pod_is_admitted_unchanged_when_the_api_server_fails(world: World, failure: FederationError) -> None:
    await world.begin(a_subset("base", 2))
    world.line.failure = failure
    response = await world.create()
    assert response["allowed"] is True
    assert "patch" not in response
    assert "admitted without a decision" in response["warnings"][0]


async def test_pods_are_admitted_unchanged_while_the_status_has_no_room_for_more_records(world: World) -> None:
    await world.begin(a_subset("base", 20_000))
    world.line.bytes_max = 3_000
    answers = [await world.create(named(world.pod(), f"web-{number}-{'x' * 100}")) for number in range(20)]
    spread = ["patch" in answer for answer in answers]
    assert all(answer["allowed"] for answer in answers)
    assert len(await world.records("creatingPods")) == spread.count(True)
    assert 5 < spread.count(True) < 18
    assert all("too large" in answer["warnings"][0] for answer in answers if "patch" not in answer)
    await pass_time(world, 85)
    assert await world.records("creatingPods") == []
    assert "patch" in await world.create(named(world.pod(), "web-later"))


def named(pod: Object, name: str) -> Object:
    return {**pod, "metadata": {**pod["metadata"], "name": name}}


@pytest.mark.parametrize(
    "patch",
    [{"metadata": {"labels": {"app": "other"}}}, {"metadata": {"labels": {"app": ["x"]}}}, {"$patch": "x"}],
    ids=["releases the pod", "has a wrong type", "is malformed"],
)
async def test_a_pod_that_cannot_have_its_patch_takes_no_place_and_the_spread_says_why(
    world: World, patch: Object
) -> None:
    # The webhook does not see these writes, as while the service does not run.
    await world.begin(a_subset("base", 2, patch=patch), a_subset("elastic"))
    response = await world.create()
    assert (response["allowed"], response["status"]["code"]) == (False, 400)
    assert "patch of subset base" in response["status"]["message"]
    assert await world.records("creatingPods") == []
    await world.clock.advance(1)
    events = (await world.user.list(EVENTS, "default")).items
    assert any(
        event["reason"] == EVENT_INVALID_SPREAD and response["status"]["message"] in event["message"]
        for event in events
    )


async def test_a_pod_is_admitted_unchanged_when_the_api_server_hangs(world: World) -> None:
    await world.begin(a_subset("base", 2))
    world.line.hangs = True
    response = await world.create()
    assert (response["allowed"], "patch" in response) == (True, False)
    world.line.hangs = False
    assert "patch" in await world.create()


async def test_a_pod_is_denied_when_other_writers_are_always_faster(world: World) -> None:
    await world.begin(a_subset("base", 2))
    world.line.failure = Conflict("another writer was faster")
    response = await world.create()
    assert (response["allowed"], response["status"]["code"]) == (False, 500)
    response = await world.review("/remove-pod", oldObject=await _spread_pod(world))
    assert response["allowed"] is True


async def _spread_pod(world: World) -> Object:
    pod = world.pod()
    pod["metadata"]["annotations"] = {MATCHED_WORKLOAD_SPREAD: '{"name":"web","subset":"base"}'}
    assert parse_match(pod) is not None
    return pod


async def test_a_pod_is_denied_when_the_patch_of_its_subset_cannot_be_applied(world: World) -> None:
    await world.begin(a_subset("base", 2, patch={"spec": {"containers": [{"image": "no-name"}]}}))
    response = await world.create()
    assert response["allowed"] is False
    assert response["status"]["code"] < 500


async def test_dry_runs_and_pods_of_no_controller_change_nothing(world: World) -> None:
    await world.begin(a_subset("base", 2))
    for answer in (
        await world.create(dryRun=True),
        await world.create(world.pod(ownerReferences=[])),
        await world.create(world.pod(ownerReferences=None)),
        await world.create({}),
        await world.review("/remove-pod", oldObject=await _spread_pod(world), dryRun=True),
        await world.review("/evict-pod", name="nobody"),
    ):
        assert answer == {"uid": "u-1", "allowed": True}
    assert await world.records("creatingPods") == []
    assert await world.records("deletingPods") == []


async def test_a_removed_pod_is_recorded_until_it_is_gone(world: World) -> None:
    await world.begin(a_subset("base", 2))
    await world.review("/remove-pod", oldObject=await _spread_pod(world))
    assert await world.records("deletingPods") == ["web-1"]


async def test_a_review_of_a_removal_without_the_pod_is_allowed(world: World) -> None:
    await world.begin(a_subset("base", 2))
    assert await world.review("/remove-pod", oldObject=None) == {"uid": "u-1", "allowed": True}


async def test_a_malformed_limit_admits_pods_and_is_reported(world: World) -> None:
    await world.begin(a_subset("base", "many"))
    response = await world.create()
    assert (response["allowed"], "patch" in response) == (True, False)
    await world.clock.advance(1)
    events = (await world.user.list(EVENTS, "default")).items
    assert "InvalidWorkloadSpread" in [event["reason"] for event in events]


async def pass_time(world: World, seconds: int) -> None:
    for _ in range(seconds):
        await world.clock.advance(1)


async def test_the_record_of_a_pod_that_never_comes_ends_with_a_proof(world: World) -> None:
    await world.begin(a_subset("base", 1), a_subset("rest"))
    await world.create()
    assert await world.records("creatingPods") == ["web-1"]
    await pass_time(world, 70)
    assert await world.records("creatingPods") == ["web-1"], "its request may still be running"
    await pass_time(world, 15)
    assert await world.records("creatingPods") == []
    await world.clock.advance(1)
    events = (await world.user.list(EVENTS, "default")).items
    assert "CreatePodFailed" in [event["reason"] for event in events]


async def test_the_record_of_a_pod_that_the_watch_does_not_show_stays(world: World) -> None:
    await world.begin(a_subset("base", 1), a_subset("rest"))
    world.line.sight.clear()
    await world.create()
    match = {MATCHED_WORKLOAD_SPREAD: '{"name":"web","subset":"base"}'}
    await world.user.create(PODS, world.pod(annotations=match))
    await pass_time(world, 200)
    assert await world.records("creatingPods") == ["web-1"]


async def test_an_instance_that_has_not_seen_the_counted_pods_does_not_count(world: World) -> None:
    await world.begin(a_subset("base", 2), a_subset("rest"))
    world.line.sight.clear()
    status = {"observedGeneration": 1, "podsResourceVersion": "1000000"}
    entry = {"name": "base", "replicas": 2, "missingReplicas": 0, "maxReplicas": 2}
    rest = {"name": "rest", "replicas": 0, "missingReplicas": -1}
    counts = {"subsetStatuses": [entry, rest], "versionedSubsetStatuses": {"versionIgnored": [entry, rest]}}
    spread = await world.user.get(WORKLOAD_SPREADS, "web", "default")
    await world.user.update(WORKLOAD_SPREADS, {**spread, "status": status | counts}, subresource="status")
    await pass_time(world, 5)
    assert (await world.status())["subsetStatuses"] == [entry, rest]
    world.line.sight.set()
    await pass_time(world, 5)
    assert (await world.status())["subsetStatuses"] == [entry, rest]
    assert subset_of(await world.create()) == "rest"


async def test_a_deletion_that_comes_late_or_is_refused_frees_no_place(world: World) -> None:
    await world.begin(a_subset("base", 1), a_subset("rest"))
    pod = await world.user.create(PODS, await _spread_pod(world))
    await world.clock.advance(2)
    await world.review("/remove-pod", oldObject=pod)
    assert await world.records("deletingPods") == ["web-1"]
    assert subset_of(await world.create(named(world.pod(), "web-2"))) == "rest"
    await world.user.delete(PODS, "web-1", "default")
    await world.review("/remove-pod", oldObject=pod)
    assert subset_of(await world.create(named(world.pod(), "web-3"))) == "base"
    assert subset_of(await world.create(named(world.pod(), "web-4"))) == "rest"


def subset_of(answer: Object) -> str | None:
    """Return the subset that an answer assigns."""
    for operation in orjson.loads(base64.b64decode(answer.get("patch") or "W10=")):
        if operation["path"] == "/metadata/annotations":
            match = parse_match({"metadata": {"annotations": operation["value"]}})
            return match.subset if match is not None else None
    return None


async def test_a_pod_without_a_decision_gets_an_event_and_is_counted_as_unmatched(world: World) -> None:
    await world.begin(a_subset("base", 1), a_subset("rest"))
    world.line.failure = ServiceUnavailable("down")
    await world.create()
    world.line.failure = None
    await world.user.create(PODS, world.pod())
    await world.clock.advance(5)
    assert (await world.status())["unmatchedReplicas"] == 1
    await world.clock.advance(1)
    reasons = [event["reason"] for event in (await world.user.list(EVENTS, "default")).items]
    assert {"AdmittedWithoutDecision", "PodsWithoutSubset"} <= set(reasons)
    await world.user.delete(PODS, "web-1", "default")
    await world.clock.advance(5)
    assert "unmatchedReplicas" not in await world.status()


async def test_a_pod_without_a_subset_is_admitted_as_it_is(world: World) -> None:
    await world.begin(a_subset("base", 0))
    answer = await world.create()
    assert answer["allowed"]
    assert "patch" not in answer


async def test_a_deletion_cost_that_cannot_be_written_is_reported_and_tried_again(world: World) -> None:
    await world.begin(a_subset("base", 2), a_subset("elastic"))
    match = {MATCHED_WORKLOAD_SPREAD: '{"name":"web","subset":"base"}'}
    world.line.refused = Conflict("busy")
    await world.user.create(PODS, world.pod(annotations=match))
    await world.clock.advance(5)

    async def cost() -> Any:
        return (await world.user.get(PODS, "web-1", "default"))["metadata"]["annotations"].get(names.POD_DELETION_COST)

    assert await cost() is None
    reasons = [event["reason"] for event in (await world.user.list(EVENTS)).items]
    assert EVENT_PATCH_POD_DELETION_COST_FAILED in reasons
    world.line.refused = None
    for _ in range(20):
        await world.clock.advance(5)
    assert await cost() == "200"
