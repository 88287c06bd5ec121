"""A member answers nonsense: it may lose its own report, but the others get their objects, and their statuses count."""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from tests.attacks.test_member_limits import Hostile, a_configmap, an_informer, answered, run_for, serve
from tests.support.lines import MemberLine
from tests.support.manifests import a_deployment, a_policy
from tests.support.metrics import sample_of
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery import quantity
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ClusterError, ClusterLimitExceeded, ClusterUnreachable, from_status
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NODES, SERVICES, Object
from federation.client.client import Client, PatchType, Request, Watch, WatchEvent
from federation.controllers.cluster.apidiscovery import discover
from federation.controllers.statusaggregate.names import REASON_MEMBER_STATUS_INVALID
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.operations import MemberWriter
from federation.delivery.rules.content import Write
from federation.planning.aggregation import service
from federation.planning.aggregation.context import Context
from federation.planning.clusters import nodeclasses
from federation.planning.clusters.clusterresources import Collector
from federation.planning.status.collection import to_entry
from federation.runtime.transforms import slim_node, slim_pod

assert serve is not None  # a fixture

DEEP = orjson.loads(b'{"a":' * 400 + b"1" + b"}" * 400)
Distort = Callable[[Object], Any]


class LyingLine(MemberLine):
    """The line to a member that changes objects on their way to the host."""

    distort: Distort | None = None
    about = (DEPLOYMENTS, SERVICES)
    revision = ""

    async def request(self, request: Request) -> Object:
        answer = await super().request(request)
        if self.distort is None or request.resource not in self.about or request.verb == "delete":
            return answer
        if request.verb != "list":
            return dict(self.distort(orjson.loads(orjson.dumps(answer))))
        answer = orjson.loads(orjson.dumps(answer))
        if self.revision:
            answer["metadata"]["resourceVersion"] = self.revision
        return {**answer, "items": [self.distort(item) for item in answer["items"]]}

    async def stream(self, request: Request) -> Watch:
        async for batch in super().stream(request):
            if self.distort is None or request.resource not in self.about:
                yield batch
                continue
            copies = [(event.type, orjson.loads(orjson.dumps(event.object))) for event in batch]
            yield [WatchEvent(type_, self.distort(obj)) for type_, obj in copies]


def with_status(**status: Any) -> Distort:
    return lambda obj: {**obj, "status": {**(obj.get("status") or {}), **status}}


STATUSES: dict[str, dict[str, Any]] = {
    "a text as number": {"readyReplicas": "many"},
    "a list as number": {"availableReplicas": [3]},
    "a negative number": {"readyReplicas": -7},
    "a huge number": {"readyReplicas": 2**62},
    "a float beyond integers": {"readyReplicas": 1e300},
    "a text as generation": {"observedGeneration": "new"},
    "texts as conditions": {"conditions": ["Available"]},
    "a map as conditions": {"conditions": {"type": "Available"}},
    "a number as condition type": {"conditions": [{"type": [], "status": "True"}]},
    "a message of megabytes": {
        "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "x", "message": "x" * 4_000_000}]
    },
}


def invalidate(world: World) -> None:
    """Let the control plane list everything in the lying member again."""
    member = world.plane.members._members["east"]
    member.informers.invalidate()


async def until_ready_replicas(world: World, name: str, count: int) -> None:
    async def look() -> Any:
        return (await world.status(name)).get("readyReplicas", 0)

    await world.until_equal(look, count)


async def lying(world: World, member: str) -> LyingLine:
    """Let the member's line lie from now on, once `distort` is set."""
    line = world.members[member].line
    line.__class__ = LyingLine
    assert isinstance(line, LyingLine)
    return line


@pytest.mark.parametrize("status", STATUSES.values(), ids=STATUSES)
async def test_a_part_of_a_status_without_sense_counts_as_none_and_all_else_counts(status: dict[str, Any]) -> None:
    is_all_lost = "message" in str(status)  # too large to be copied
    ready = 8 if "readyReplicas" in status or is_all_lost else 12
    async with a_world() as world:
        line = await lying(world, "east")
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await until_ready_replicas(world, "web", 6)
        line.distort = with_status(**status)
        invalidate(world)
        await world.scale("web", 12)
        await until_ready_replicas(world, "web", ready)
        found = await world.condition("web", names.STATUS_AGGREGATED)
        field = "status" if is_all_lost else next(iter(status))
        assert (found["reason"], field in found["message"]) == (REASON_MEMBER_STATUS_INVALID, True)
        assert world.failed() == 0
        line.distort = None
        await world.scale("web", 18)
        await until_ready_replicas(world, "web", 18)


CONTENTS: dict[str, Distort] = {
    "a text as spec": lambda obj: {**obj, "spec": "none"},
    "texts as containers": lambda obj: {**obj, "spec": {**obj["spec"], "template": {"spec": {"containers": ["x"]}}}},
    "a text as generation": lambda obj: {**obj, "metadata": {**obj["metadata"], "generation": "new"}},
    "a list as container name": lambda obj: {
        **obj,
        "spec": {**obj["spec"], "template": {"spec": {"containers": [{"name": ["x"]}]}}},
    },
    "no owner uid": lambda obj: {
        **obj,
        "metadata": {**obj["metadata"], "ownerReferences": [{"controller": True, "kind": "x", "name": "x"}]},
    },
    "a spec of 400 levels": lambda obj: {**obj, "spec": DEEP},
}


@pytest.mark.parametrize("distort", CONTENTS.values(), ids=CONTENTS)
async def test_objects_without_sense_do_not_stop_the_delivery_to_other_members(distort: Distort) -> None:
    async with a_world() as world:
        line = await lying(world, "east")
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await until_ready_replicas(world, "web", 6)
        line.distort = distort
        invalidate(world)
        await world.scale("web", 12)
        await until_delivered(world, 4)
        line.distort = None
        invalidate(world)
        await world.until_replicas("web", {"east": 4, "north": 4, "west": 4})


async def test_a_report_that_cannot_be_stored_makes_the_member_not_ready_until_it_can() -> None:
    async with a_world() as world:
        line = await lying(world, "east")
        line.about = (NODES,)
        line.distort = lambda node: {**node, "spec": {"taints": [{"key": 7, "effect": "NoSchedule"}]}}
        restarts = restarted("monitor east")
        world.plane.members._members["east"].informers.invalidate()
        node = await world.members["east"].admin.get(NODES, "node-1")
        await world.members["east"].merge(NODES, node["metadata"]["name"], {"metadata": {"labels": {"a": "b"}}}, "")
        await world.until_ready("east", status="False")
        assert restarted("monitor east") == restarts
        line.distort = None
        await world.members["east"].merge(NODES, node["metadata"]["name"], {"metadata": {"labels": {"a": "c"}}}, "")
        await world.until_ready("east")


def restarted(task: str) -> float:
    return sample_of("federation_base_task_restarts_total", {"task": task}) or 0.0


async def test_a_revision_of_thousands_of_digits_does_not_stop_the_delivery_to_other_members() -> None:
    async with a_world() as world:
        line = await lying(world, "east")
        line.distort, line.revision = (lambda obj: obj), "9" * 5_000
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=12))
        await until_delivered(world, 4)
        line.distort = None
        line.revision = ""
        invalidate(world)


async def until_delivered(world: World, replicas: int) -> None:
    async def look() -> list[int | None]:
        return [await world.members[name].replicas("web") for name in ("north", "west")]

    await world.until_equal(look, [replicas, replicas])
    assert world.failed() == 0


@pytest.mark.parametrize(
    "ports", ["http", ["http"], [{"nodePort": 1, "name": [1]}], {"a": 1}], ids=["text", "texts", "list as name", "map"]
)
async def test_a_service_with_ports_without_sense_fails_alone(ports: Any) -> None:
    desired = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30_000}]},
    }
    live = {**desired, "metadata": {"name": "web", "labels": {}}, "spec": {"ports": ports}}
    from federation.delivery.rules.content import to_applied_configuration
    from federation.planning.rendering.memberobject import Rendered
    from federation.planning.rendering.retention import RetentionError

    rendered = Rendered(desired, "hash")
    write = Write(None, rendered, live)  # type: ignore[arg-type]  # the key is not used
    with pytest.raises(RetentionError, match="malformed"):
        to_applied_configuration(write, live)


@pytest.mark.parametrize(
    "answer",
    [{}, [], {"metadata": {}}, {"metadata": {"name": "c0", "resourceVersion": 7}}, {"metadata": "x"}],
    ids=["empty", "list", "no name", "number as revision", "no metadata"],
)
async def test_an_answer_without_the_object_is_a_cluster_error(serve: Any, answer: Any) -> None:
    client = await serve(lambda path: answered(orjson.dumps(answer)))
    with pytest.raises(ClusterError, match="without"):
        await client.get(CONFIGMAPS, "c0", "default")
    with pytest.raises(ClusterError, match="without"):
        await client.patch(CONFIGMAPS, "c0", {}, patch_type=PatchType.APPLY, namespace="default", field_manager="x")


@pytest.mark.parametrize("revision", ["9" * 5000, "x" * 70_000], ids=["digits", "text"])
async def test_a_list_with_a_long_revision_is_a_cluster_error(serve: Any, revision: str) -> None:
    client = await serve(lambda path: answered(orjson.dumps({"metadata": {"resourceVersion": revision}})))
    with pytest.raises(ClusterError, match="resourceVersion"):
        await client.list(CONFIGMAPS)


@pytest.mark.parametrize(
    "details",
    [{"causes": ["x"]}, {"causes": {"a": 1}}, {"retryAfterSeconds": "soon"}, {"retryAfterSeconds": 1e300}, {"name": 7}],
    ids=["texts as causes", "map as causes", "text as delay", "endless delay", "number as name"],
)
async def test_an_error_with_details_without_sense_is_an_ordinary_failure(details: Any) -> None:
    error = from_status({"reason": "Timeout", "details": details}, 504)

    class Failing(Hostile):
        async def stream(self, request: Request) -> Watch:
            yield []
            raise error

        async def request(self, request: Request) -> dict[str, Any]:
            if request.verb != "list":
                raise error
            return await super().request(request)

    clock = ManualClock()
    hostile = Failing(lambda _: {"metadata": {"resourceVersion": "4"}, "items": []})
    await run_for(an_informer(hostile, clock), clock, 5)
    outcome = await MemberWriter(KeptState()).remove(Client(hostile), a_member_key(), "uid", find_evidence=lambda: None)
    assert not outcome.is_ok
    assert 0 <= outcome.retry_after_s <= 3_600


def a_member_key() -> Any:
    from federation.delivery.rules.memberrecord import MemberKey

    return MemberKey("hostile", CONFIGMAPS, "default", "c0")


@pytest.mark.parametrize(
    "item",
    [
        {**a_configmap(0), "spec": DEEP},
        a_configmap(0, ownerReferences=[{"controller": True}]),
        a_configmap(0, generation="x"),
        a_configmap(0, generation=2**70),
    ],
    ids=["400 levels", "owner without uid", "text as generation", "huge generation"],
)
async def test_items_that_no_cache_can_hold_are_skipped(item: Any) -> None:
    clock = ManualClock()
    page = {"metadata": {"resourceVersion": "40"}, "items": [item, a_configmap(1)]}
    informer = an_informer(Hostile(lambda _: page), clock)
    await run_for(informer, clock, 5)
    assert informer.has_synced
    assert [obj["metadata"]["name"] for obj in informer.list()] == ["c1"]


def a_node(name: str, labels: int = 0, **allocatable: str) -> Object:
    named = {f"label-{number}": "x" for number in range(labels)}
    return {"metadata": {"name": name, "labels": named, "resourceVersion": "1"}, "status": {"allocatable": allocatable}}


@pytest.mark.parametrize(
    "node",
    [
        a_node("n", labels=20_000),
        a_node("n", **{f"r{number}": "1" for number in range(1_000)}),
        {**a_node("n"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}] * 1_000}},
        {"metadata": {"name": "n", "labels": {"k" * 1_000_000: "v"}, "resourceVersion": "1"}},
        {"metadata": {"name": "n", "labels": {"k": "v" * 1_000_000}, "resourceVersion": "1"}},
    ],
    ids=["labels", "resources", "taints", "a long key", "a long value"],
)
def test_a_node_with_more_than_nodes_have_is_refused(node: Object) -> None:
    with pytest.raises(ValueError, match="too many"):
        slim_node(node)


def test_a_pod_with_more_resources_than_pods_use_is_refused() -> None:
    requests = {f"r{number}": "1" for number in range(1_000)}
    for spec in ({"containers": [{"resources": {"requests": requests}}]}, {"overhead": requests}):
        with pytest.raises(ValueError, match="too many"):
            slim_pod({"metadata": {"name": "p", "resourceVersion": "1"}, "spec": spec})


@pytest.mark.timeout(60)
def test_the_sums_of_a_member_take_little_time_whatever_its_nodes_report() -> None:
    collector = Collector()
    for number in range(600):
        names = {f"n{number}.example/{index}": "1" for index in range(100)}
        collector.set_node(f"n{number}", a_node(f"n{number}", labels=500, cpu="4", **names))
    status = collector.resources().to_status()
    assert len(status["allocatable"]) <= 256
    assert len(orjson.dumps(status)) < 2_000_000


def test_the_label_keys_that_are_compared_are_bounded_by_the_number_of_nodes() -> None:
    nodes = {f"n{number}": ({f"k{key}": "x" for key in range(60)}, ()) for number in range(20_000)}
    classes, omitted = nodeclasses.classify(nodes)
    assert len(set(classes.values())) == 1
    assert len(omitted) == 60 - 1_000_000 // 20_000


@pytest.mark.parametrize("amount", ["9" * 4_290 + "e64", "9" * 200, "1." + "3" * 1_000])
def test_an_amount_of_thousands_of_digits_is_none(amount: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse(amount)
    collector = Collector()
    collector.set_node("n", a_node("n", cpu=amount, memory="1Gi"))
    assert collector.resources().to_status()["allocatable"] == {"memory": "1Gi"}


@pytest.mark.timeout(60)
def test_many_addresses_of_a_load_balancer_take_little_time() -> None:
    points = [{"ip": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"} for number in range(60_000)]
    merged = service.merge({}, {"a": {"status": {"loadBalancer": {"ingress": points}}}}, Context(ManualClock().now()))
    assert merged == {"loadBalancer": {"ingress": points}}


def test_large_fields_of_a_member_are_not_collected() -> None:
    entry = to_entry("east", {"status": {"note": "x" * 1_000_000}}, [("status",)])
    assert entry["collectedFields"] == {}
    assert "bytes" in entry["error"]


class Discovery(Hostile):
    """A transport that answers discovery from a function of the path."""

    def __init__(self, answer: Callable[[str], Any]) -> None:
        super().__init__(lambda _: {})
        self.paths: list[str] = []
        self.groups = 500
        self._answer = answer

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        self.paths.append(path)
        await asyncio.sleep(0)
        groups = [{"name": f"g{number}", "versions": [{"version": "v1"}]} for number in range(self.groups)]
        answer = {"/api": {"versions": []}, "/apis": {"groups": groups}}.get(path) or self._answer(path)
        return 200, orjson.dumps(answer)


async def test_a_discovery_beyond_the_limit_stops_early() -> None:
    resources = [{"name": f"r{number}", "kind": "R"} for number in range(3_000)]
    hostile = Discovery(lambda path: {"resources": resources})
    with pytest.raises(ClusterLimitExceeded, match="5000 types"):
        await discover(Client(hostile), [])
    assert len(hostile.paths) < 20


async def test_a_long_answer_to_discovery_is_not_parsed() -> None:
    hostile = Discovery(lambda path: {"resources": [{"name": "r", "kind": "R"}], "rest": "x" * 5_000_000})
    hostile.groups = 50
    assert len((await discover(Client(hostile), [])).failed) == 50


async def test_a_member_that_falls_silent_during_discovery_is_not_asked_500_times() -> None:
    def silent(path: str) -> Any:
        raise ClusterUnreachable("no answer within 10 s")

    hostile = Discovery(silent)
    found = await discover(Client(hostile), [{"group": "g7", "version": "v1", "kind": "K", "pluralName": "ks"}])
    assert len(hostile.paths) < 30
    assert [type_["kind"] for type_ in found.types] == ["K"], "what was known stays"


async def test_more_api_groups_than_a_server_has_are_not_asked() -> None:
    hostile = Discovery(lambda path: {"resources": []})
    hostile.groups = 2_000
    with pytest.raises(ClusterLimitExceeded, match="group versions"):
        await discover(Client(hostile), [])
    assert sorted(hostile.paths) == ["/api", "/apis"]
