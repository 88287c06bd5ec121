"""Custom metrics of members on the host: whose rights decide, discovery, and members that hang or lie."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import orjson
import pytest
from tests.support.apiserver import Parts, api_server
from tests.support.hostilemember import HostileMember, hostile_member
from tests.support.rest import Api, Refused, eventually, refused

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.client.kubeconfig import load_kubeconfig
from federation.client.pool import ClusterPool
from federation.memberproxy.hostviews import serve_members
from federation.memberproxy.mergedreader import MergedOptions
from federation.memberproxy.placedclusters import PlacedClusters

pytestmark = pytest.mark.xdist_group("merged-pods")
GROUP = "/apis/custom.metrics.k8s.io"
SHOP = f"{GROUP}/v1beta2/namespaces/shop"
OPTIONS = MergedOptions(page_bytes_max=200_000, member_bytes_min=100_000)


@dataclass
class World:
    host: Parts
    admin: Api
    alice: Api
    west: HostileMember
    north: HostileMember


def an_item(name: str, value: str = "5", kind: str = "Pod", namespace: str = "shop") -> dict[str, Any]:
    return {
        "describedObject": {"kind": kind, "namespace": namespace, "name": name, "apiVersion": "/v1"},
        "metric": {"name": "hits"},
        "timestamp": "2026-01-01T00:00:00Z",
        "value": value,
    }


def says(member: HostileMember, *items: Any) -> None:
    answer = {"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "items": items}
    member.says("200 OK", orjson.dumps(answer))


def refuses(member: HostileMember, code: int, reason: str, message: str) -> None:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    member.says(f"{code} {reason}", orjson.dumps(status))


def shown(answer: httpx.Response) -> list[tuple[str, str]]:
    return [(item["describedObject"]["name"], item["value"]) for item in answer.json()["items"]]


def may_read(api: Api) -> bool:
    try:
        return api.send("GET", f"{SHOP}/pods/*/hits").status_code == 200
    except Refused:
        return False


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pool = ClusterPool()
    with ExitStack() as stack:
        members = {name: stack.enter_context(hostile_member()) for name in ("west", "north")}
        for name, member in members.items():
            pool.set_connection(name, Connection(f"http://127.0.0.1:{member.port}", token="federation-secret"))
        host = stack.enter_context(api_server(tmp_path_factory.mktemp("host")))
        placed = PlacedClusters(pool)
        serve_members(host, pool, placed, SystemClock(), OPTIONS)
        placement = [{"cluster": name} for name in members]
        spec = {"placements": [{"controller": "c", "placement": placement}]}
        placed.changed(None, {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec})
        admin = stack.enter_context(closing(Api(load_kubeconfig(host.kubeconfig), "shop")))
        rules = [{"apiGroups": ["custom.metrics.k8s.io"], "resources": ["pods/hits"], "verbs": ["get"]}]
        admin.create("namespaces", {"metadata": {"name": "shop"}})
        admin.create("roles", {"metadata": {"name": "hits"}, "rules": rules})
        reference = {"kind": "Role", "name": "hits", "apiGroup": "rbac.authorization.k8s.io"}
        subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
        admin.create("rolebindings", {"metadata": {"name": "a"}, "subjects": [subject], "roleRef": reference})
        token = host.token_file.add(user="alice", groups=())
        connection = Connection(host.server, ca_data=host.pki.ca_certificate.read_bytes(), token=token)
        alice = stack.enter_context(closing(Api(connection, "shop")))
        made = World(host, admin, alice, members["west"], members["north"])
        for member in members.values():
            says(member)
        eventually(lambda: may_read(alice))
        yield made
        host.run(pool.close())


def test_pods_of_all_members_are_in_one_list(world: World) -> None:
    says(world.west, an_item("a"), an_item("b"))
    says(world.north, an_item("a", "7"))
    query = {"labelSelector": "app in (web)", "metricLabelSelector": "verb=GET"}
    answer = world.alice.send("GET", f"{SHOP}/pods/*/hits", **query)
    assert answer.json()["apiVersion"] == "custom.metrics.k8s.io/v1beta2"
    assert sorted(shown(answer)) == [("north-a", "7"), ("west-a", "5"), ("west-b", "5")]
    assert "warning" not in answer.headers
    sent = urlsplit(world.west.received[-1].split(b"\r\n")[0].decode().split(" ")[1])
    assert unquote(sent.path) == f"{SHOP}/pods/*/hits"
    assert {key: value for key, [value] in parse_qs(sent.query).items()} == query
    head = world.west.last()
    assert (head["impersonate-user"], head["authorization"]) == (["alice"], ["Bearer federation-secret"])


def test_the_value_of_one_object_is_the_average_of_the_clusters(world: World) -> None:
    says(world.west, an_item("web", "1", "Deployment"))
    says(world.north, an_item("web", "2", "Deployment"))
    assert shown(world.admin.send("GET", f"{SHOP}/deployments.apps/web/hits")) == [("web", "1500m")]
    refuses(world.north, 404, "NotFound", "no such metric")
    answer = world.admin.send("GET", f"{SHOP}/deployments.apps/web/hits")
    assert (shown(answer), answer.headers.get("warning")) == ([("web", "1")], None)


def test_the_group_is_in_discovery(world: World) -> None:
    versions = [each["version"] for each in world.admin.send("GET", GROUP).json()["versions"]]
    assert versions == ["v1beta2", "v1beta1"]
    listed = world.admin.send("GET", f"{GROUP}/v1beta2").json()
    assert (listed["groupVersion"], listed["resources"]) == ("custom.metrics.k8s.io/v1beta2", [])
    aggregated = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
    groups = world.admin.send("GET", "/apis", headers={"accept": aggregated}).json()["items"]
    [group] = [each for each in groups if each["metadata"]["name"] == "custom.metrics.k8s.io"]
    assert [each["freshness"] for each in group["versions"]] == ["Current", "Current"]


def test_the_right_on_the_host_is_that_of_the_resource_and_metric(world: World) -> None:
    says(world.west, an_item("a"))
    for path in ("pods/*/other", "services/web/hits", "metrics/hits"):
        with refused(403, text='User "alice" cannot get resource'):
            world.alice.send("GET", f"{SHOP}/{path}")
    with refused(403, text='cannot get resource "pods/hits"'):
        world.alice.send("GET", f"{GROUP}/v1beta2/namespaces/bank/pods/*/hits")
    with refused(403, text='cannot get resource "nodes/hits"'):
        world.alice.send("GET", f"{GROUP}/v1beta2/nodes/*/hits")


def test_the_refusal_of_a_member_is_a_warning_or_the_answer(world: World) -> None:
    refuses(world.west, 403, "Forbidden", 'User "alice" cannot get resource "pods/hits"')
    says(world.north, an_item("a"))
    answer = world.alice.send("GET", f"{SHOP}/pods/*/hits")
    assert shown(answer) == [("north-a", "5")]
    assert "metrics of cluster west are missing: User" in answer.headers["warning"]
    refuses(world.north, 404, "NotFound", "no such metric")
    with refused(403, text="cannot get resource"):
        world.alice.send("GET", f"{SHOP}/pods/*/hits")


def test_only_metrics_can_be_read(world: World) -> None:
    for path in ("pods", "pods/a", "pods/a/hits/more", "metrics/hits/more/still"):
        with refused(404):
            world.admin.send("GET", f"{SHOP}/{path}")
    for path in ("pods/a/hits", "metrics/hits"):
        with refused(405):
            world.admin.send("DELETE", f"{SHOP}/{path}")
    with refused(405):
        world.admin.send("GET", f"{SHOP}/metrics/hits", watch="true")
    with refused(400, text="unable to parse"):
        world.admin.send("GET", f"{SHOP}/pods/*/hits", labelSelector="a b c")


def test_a_name_cannot_lead_to_another_path(world: World) -> None:
    count = len(world.west.received)
    for name in ("west-..", "west-%2e%2e"):
        with refused(400, text="cannot have empty segments"):
            world.admin.send("GET", f"{SHOP}/pods/{name}/hits")
    assert len(world.west.received) == count
    refuses(world.west, 404, "NotFound", "no such pod")
    with refused(404):
        world.admin.send("GET", f"{SHOP}/pods/west-a%3Flimit=1/hits")
    assert b"/pods/a%3Flimit=1/hits HTTP" in world.west.received[-1].split(b"\r\n")[0]


def test_a_member_that_hangs_is_named_within_the_limit(world: World) -> None:
    released = threading.Event()

    def hang(_head: bytes) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
        released.wait(60)

    says(world.north, an_item("a"))
    world.west.answer = hang
    answer = world.alice.send("GET", f"{SHOP}/pods/*/hits")
    assert shown(answer) == [("north-a", "5")]
    assert answer.headers["warning"] == '299 - "metrics of cluster west are missing: no answer in 2 s"'
    with refused(503, text="metrics of cluster west are missing: no answer in 2 s"):
        world.alice.send("GET", f"{SHOP}/pods/west-a/hits")
    released.set()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"[]", "without a JSON object"),
        (b'{"items": 1}', "without a list of metrics"),
        (orjson.dumps({"items": [an_item("a", "lots")]}), "malformed metric"),
        (orjson.dumps({"items": [an_item("a", namespace="bank")]}), "another namespace"),
        (orjson.dumps({"items": [an_item("a")] * 1000}), "more than 100000 bytes"),
    ],
    ids=["list", "items", "value", "namespace", "huge"],
)
def test_a_member_that_lies_is_a_warning(world: World, body: bytes, problem: str) -> None:
    world.west.says("200 OK", body)
    says(world.north, an_item("a"))
    answer = world.alice.send("GET", f"{SHOP}/pods/*/hits")
    assert shown(answer) == [("north-a", "5")]
    assert problem in answer.headers["warning"]


def test_an_apiservice_of_the_group_takes_its_place(world: World) -> None:
    name = "v1beta1.custom.metrics.k8s.io"
    service = {"namespace": "monitoring", "name": "adapter"}
    spec = {"group": "custom.metrics.k8s.io", "version": "v1beta1", "service": service, "insecureSkipTLSVerify": True}
    body = {"metadata": {"name": name}, "spec": {**spec, "groupPriorityMinimum": 100, "versionPriority": 100}}
    world.admin.create("apiservices", body)
    try:
        eventually(
            lambda: [each["version"] for each in world.admin.send("GET", GROUP).json()["versions"]] == ["v1beta1"]
        )
        with refused(404):
            world.admin.send("GET", f"{SHOP}/pods/*/hits")
        with refused(503):
            world.admin.send("GET", f"{GROUP}/v1beta1/namespaces/shop/pods/*/hits")
    finally:
        world.admin.delete("apiservices", name)
    says(world.west)
    says(world.north)
    eventually(lambda: shown(world.admin.send("GET", f"{SHOP}/pods/*/hits")) == [])
