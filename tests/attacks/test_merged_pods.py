"""Pods of members on the host: who sees which, names with two meanings, paging, watches, and members that hang or lie."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from tests.support.apiserver import Parts, api_server
from tests.support.hostilemember import HostileMember, hostile_member
from tests.support.rest import TABLE, Api, Refused, eventually, refused

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.client.kubeconfig import load_kubeconfig
from federation.client.pool import ClusterPool
from federation.memberproxy.hostviews import serve_members
from federation.memberproxy.mergedreader import MergedOptions
from federation.memberproxy.placedclusters import PlacedClusters

pytestmark = pytest.mark.xdist_group("merged-pods")
PLACEMENTS = {
    "shop": ("east", "east-b"),
    "bank": ("east-b",),
    "odd": ("hostile",),
    "mixed": ("east", "hostile"),
}
OPTIONS = MergedOptions(page_bytes_max=200_000, member_bytes_min=100_000)
POD = {"containers": [{"name": "main", "image": "nginx"}]}
RBAC_GROUP = "rbac.authorization.k8s.io"


@dataclass
class World:
    host: Parts
    admin: Api
    members: dict[str, Api]
    placed: PlacedClusters
    pool: ClusterPool
    hostile: HostileMember
    stack: ExitStack
    users: dict[tuple[str, str], Api] = field(default_factory=dict)

    def user(self, name: str, namespace: str = "shop") -> Api:
        """Return the API of a user of the host."""
        if (name, namespace) not in self.users:
            token = self.host.token_file.add(user=name, groups=())
            connection = Connection(self.host.server, ca_data=self.host.pki.ca_certificate.read_bytes(), token=token)
            self.users[name, namespace] = self.stack.enter_context(closing(Api(connection, namespace)))
        return self.users[name, namespace]

    def place(self, namespace: str, clusters: tuple[str, ...], before: tuple[str, ...] | None = None) -> None:
        self.placed.changed(
            a_federated(namespace, before) if before is not None else None, a_federated(namespace, clusters)
        )


def a_federated(namespace: str, clusters: tuple[str, ...]) -> dict[str, Any]:
    placement = [{"cluster": cluster} for cluster in clusters]
    return {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"placements": [{"controller": "c", "placement": placement}]},
    }


def a_pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": POD}


def bind(api: Api, role: str, user: str, namespace: str) -> None:
    """Give a user a role in a namespace, "" for all namespaces."""
    kind = "rolebindings" if namespace else "clusterrolebindings"
    name = f"{user.rpartition(':')[2]}-{role}"
    subject = {"kind": "User", "name": user, "apiGroup": RBAC_GROUP}
    reference = {"kind": "ClusterRole", "name": role, "apiGroup": RBAC_GROUP}
    body = {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
    api.send("POST", api.url(kind, namespace=namespace), body)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pool = ClusterPool()
    with ExitStack() as stack:
        members, hostile = {}, stack.enter_context(hostile_member())
        for name in ("east", "east-b"):
            server = stack.enter_context(api_server(tmp_path_factory.mktemp(name)))
            api = stack.enter_context(closing(Api(load_kubeconfig(server.kubeconfig), "shop")))
            for namespace in ("shop", "bank", "mixed", "kube-system"):
                if not api.exists("namespaces", namespace):
                    api.create("namespaces", {"metadata": {"name": namespace}})
            pool.set_connection(name, load_kubeconfig(server.kubeconfig))
            members[name] = api
        pool.set_connection("hostile", Connection(f"http://127.0.0.1:{hostile.port}", token="federation-secret"))
        host = stack.enter_context(api_server(tmp_path_factory.mktemp("host")))
        placed = PlacedClusters(pool)
        serve_members(host, pool, placed, SystemClock(), OPTIONS)
        admin = stack.enter_context(closing(Api(load_kubeconfig(host.kubeconfig), "shop")))
        for namespace in PLACEMENTS:
            admin.create("namespaces", {"metadata": {"name": namespace}})
        made = World(host, admin, members, placed, pool, hostile, stack)
        for namespace, clusters in PLACEMENTS.items():
            made.place(namespace, clusters)
        for user in ("alice", "bob"):
            bind(admin, "view", user, "shop")
        bind(admin, "edit", "alice", "mixed")
        bind(admin, "edit", "alice", "odd")
        bind(members["east"], "view", "alice", "shop")
        bind(members["east"], "view", "carol", "")
        bind(members["east"], "view", "alice", "mixed")
        for api in members.values():
            bind(api, "cluster-admin", "federation-admin", "")
        members["east"].create("pods", a_pod("web-1", app="web"))
        members["east"].create("pods", a_pod("b-web-2", app="web"))
        members["east-b"].create("pods", a_pod("web-2", app="web"))
        members["east-b"].create("pods", a_pod("db", app="db"))
        members["east-b"].send("POST", "/api/v1/namespaces/bank/pods", a_pod("vault"))
        members["east"].send("POST", "/api/v1/namespaces/mixed/pods", a_pod("m"))
        members["east"].send("POST", "/api/v1/namespaces/kube-system/pods", a_pod("dns"))
        members["east"].send("POST", "/api/v1/namespaces/bank/pods", a_pod("foreign"))
        eventually(lambda: may_list(made.user("alice")))
        yield made
        host.run(pool.close())


def may_list(api: Api) -> bool:
    try:
        return bool(api.names("pods"))
    except Refused:
        return False


# What is shown


def test_the_administrator_sees_the_pods_of_all_clusters(world: World) -> None:
    assert world.admin.names("pods") == ["east-b-web-2", "east-web-1", "east-b-db", "east-b-web-2"]
    assert world.admin.names("pods", labelSelector="app=db") == ["east-b-db"]
    assert world.admin.names("pods", fieldSelector="metadata.name=east-web-1") == ["east-web-1"]
    [shown] = world.admin.list("pods", fieldSelector="metadata.name=east-b-db")["items"]
    assert shown["metadata"]["annotations"] == {"kubeadmiral.io/cluster": "east-b", "kubeadmiral.io/raw-name": "db"}
    assert (shown["kind"], shown["apiVersion"]) == ("Pod", "v1")


def test_a_table_has_the_cluster_in_its_wide_form(world: World) -> None:
    table = world.admin.list("pods", accept=TABLE, labelSelector="app=db")
    assert table["columnDefinitions"][-1] | {"name": "Cluster", "priority": 1} == table["columnDefinitions"][-1]
    assert [row["cells"][-1] for row in table["rows"]] == ["east-b"]


def test_pods_of_the_host_come_first_and_have_their_own_names(world: World) -> None:
    world.admin.create("pods", a_pod("own"))
    assert world.admin.names("pods")[0] == "own"
    assert "kubeadmiral.io/cluster" not in (world.admin.get("pods", "own")["metadata"].get("annotations") or {})
    world.admin.delete("pods", "own", {"gracePeriodSeconds": 0})
    assert "own" not in world.admin.names("pods")


def test_nothing_is_stored(world: World) -> None:
    info = world.host.registry.kinds.lookup("", "v1", "pods")
    assert not world.host.run(world.host.registry.store.list(info.prefix)).entries


def test_all_namespaces_have_only_those_with_something_placed_in_the_cluster(world: World) -> None:
    world.hostile.says("503 Service Unavailable")
    found = {
        (pod["metadata"]["namespace"], pod["metadata"]["name"])
        for pod in world.admin.list("pods", namespace="")["items"]
    }
    assert ("bank", "east-b-vault") in found
    assert ("shop", "east-web-1") in found
    assert not {("kube-system", "east-dns"), ("bank", "east-foreign")} & found
    with refused(404):
        world.admin.send("GET", "/api/v1/namespaces/bank/pods/east-foreign")
    with refused(404):
        world.admin.send("GET", "/api/v1/namespaces/kube-system/pods/east-dns")


def test_nodes_and_the_events_about_one_pod_are_merged(world: World) -> None:
    world.hostile.says("503 Service Unavailable")
    world.members["east"].create("nodes", {"metadata": {"name": "n1"}})
    assert [node["metadata"]["name"] for node in world.admin.list("nodes")["items"]] == ["east-n1"]
    event = {
        "metadata": {"name": "web-1.1"},
        "involvedObject": {"kind": "Pod", "name": "web-1", "namespace": "shop"},
        "reason": "Pulled",
    }
    world.members["east"].create("events", event)
    about = world.admin.list("events", fieldSelector="involvedObject.name=east-web-1,involvedObject.kind=Pod")["items"]
    assert [each["reason"] for each in about] == ["Pulled"]
    assert world.admin.list("events", fieldSelector="involvedObject.name=web-1")["items"] == []
    assert world.admin.list("events")["items"] == []


def test_metrics_of_pods_are_merged(world: World) -> None:
    metric = {"metadata": {"name": "web", "namespace": "odd"}, "window": "15s", "containers": []}
    world.hostile.says("200 OK", orjson.dumps({"kind": "PodMetricsList", "metadata": {}, "items": [metric]}))
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/odd/pods"
    [shown] = world.user("alice", "odd").send("GET", path).json()["items"]
    assert (shown["metadata"]["name"], shown["kind"], shown["window"]) == ("hostile-web", "PodMetrics", "15s")
    with refused(403, text='cannot list resource "nodes" in API group "metrics.k8s.io"'):
        world.user("alice").send("GET", "/apis/metrics.k8s.io/v1beta1/nodes")
    with refused(405):
        world.admin.send("DELETE", f"{path}/hostile-web")


# Whose rights


def test_a_user_sees_what_both_the_host_and_the_member_allow(world: World) -> None:
    answer = world.user("alice").send("GET", "/api/v1/namespaces/shop/pods")
    assert [pod["metadata"]["name"] for pod in answer.json()["items"]] == ["east-b-web-2", "east-web-1"]
    [warning] = answer.headers.get_list("warning")
    assert "pods of cluster east-b are missing: pods is forbidden" in warning
    assert 'User \\"alice\\" cannot list resource \\"pods\\"' in warning


def test_rights_on_the_host_alone_show_nothing(world: World) -> None:
    assert world.user("bob").names("pods") == []
    with refused(403, text='User "bob" cannot get resource "pods"'):
        world.user("bob").get("pods", "east-web-1")


def test_rights_in_the_member_alone_show_nothing(world: World) -> None:
    for path in ("/pods", "/pods/east-web-1", "/pods/east-web-1/log"):
        with refused(403, text='User "carol" cannot'):
            world.user("carol").send("GET", f"/api/v1/namespaces/shop{path}")


def test_rights_in_one_namespace_show_no_other(world: World) -> None:
    for path in ("/api/v1/pods", "/api/v1/namespaces/bank/pods", "/api/v1/namespaces/bank/pods/east-b-vault"):
        with refused(403, text='User "alice" cannot'):
            world.user("alice").send("GET", path)


def test_a_path_that_leaves_the_namespace_is_refused(world: World) -> None:
    for name in ("east-..", "east-.", "east-%2e%2e", "east-a%2Fb", "east-a%3Flimit=1"):
        with pytest.raises(Refused) as caught:
            world.admin.send("GET", f"/api/v1/namespaces/shop/pods/{name}")
        assert caught.value.code in {400, 404}


def test_components_of_kubernetes_see_pods_of_the_host_only(world: World) -> None:
    agent = {"user-agent": "kube-controller-manager/v1.36.0 (linux/amd64) kubernetes/abcdef"}
    assert world.admin.send("GET", "/api/v1/namespaces/shop/pods", headers=agent).json()["items"] == []


# Names


def test_a_name_that_means_two_pods_is_refused_for_everything(world: World) -> None:
    for path in ("", "/log", "/log?follow=true"):
        with refused(409, text='"b-web-2" in cluster "east" and "web-2" in cluster "east-b"'):
            world.admin.send("GET", f"/api/v1/namespaces/shop/pods/east-b-web-2{path}")


def test_a_name_is_not_resolved_while_a_possible_cluster_is_silent(world: World) -> None:
    world.place("shop", ("east", "east-b", "hostile"), PLACEMENTS["shop"])
    world.pool.set_connection("east-", world.pool.connection("hostile"))  # type: ignore[arg-type]  # it is connected
    world.place("shop", ("east", "east-", "east-b"), ("east", "east-b", "hostile"))
    world.hostile.says("503 Service Unavailable")
    try:
        with refused(503, text="pods of cluster east- are missing"):
            world.admin.get("pods", "east--x")
    finally:
        world.place("shop", PLACEMENTS["shop"], ("east", "east-", "east-b"))
        world.host.loop.call_soon_threadsafe(world.pool.remove, "east-")


def test_a_name_that_was_too_long_is_found_again(world: World) -> None:
    long = "x" * 250
    world.members["east"].create("pods", a_pod(long))
    [name] = [name for name in world.admin.names("pods") if "xxx" in name]
    assert len(name) == 253
    found = world.admin.get("pods", name)["metadata"]
    assert (found["name"], found["annotations"]["kubeadmiral.io/raw-name"]) == (name, long)
    world.members["east"].delete("pods", long, {"gracePeriodSeconds": 0})


def test_pods_of_members_cannot_be_changed_here(world: World) -> None:
    for write in (
        lambda: world.admin.delete("pods", "east-web-1"),
        lambda: world.admin.patch("pods", "east-web-1", {"metadata": {"labels": {"a": "b"}}}),
        lambda: world.admin.create(
            "pods", {"metadata": {"name": "east-web-1"}}, name="east-web-1", subresource="eviction"
        ),
    ):
        with refused(405, text='pods "east-web-1" can only be read here'):
            write()
    assert world.members["east"].exists("pods", "web-1")


# Pages


def test_pages_have_every_pod_once(world: World) -> None:
    for limit in (1, 2, 3, 4):
        found, token, revisions = list[str](), "", set[str]()
        while True:
            page = world.admin.list("pods", limit=limit, **({"continue": token} if token else {}))
            assert len(page["items"]) <= limit
            found += [pod["metadata"]["annotations"]["kubeadmiral.io/raw-name"] for pod in page["items"]]
            revisions.add(page["metadata"]["resourceVersion"])
            if not (token := page["metadata"].get("continue", "")):
                break
        assert sorted(found) == ["b-web-2", "db", "web-1", "web-2"]
        assert len(revisions) == 1


def test_a_forged_continue_token_is_refused(world: World) -> None:
    for token in ("x", "eyJhIjoxfQ"):
        with refused(400, text="continue key is not valid"):
            world.admin.list("pods", **{"continue": token})


# Members that hang or lie


def test_a_member_that_hangs_is_named_within_the_limit(world: World) -> None:
    released = threading.Event()

    def hang(_head: bytes) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
        released.wait(60)

    world.hostile.answer = hang
    answer = world.user("alice", "mixed").send("GET", "/api/v1/namespaces/mixed/pods")
    released.set()
    assert [pod["metadata"]["name"] for pod in answer.json()["items"]] == ["east-m"]
    assert answer.headers["warning"] == '299 - "pods of cluster hostile are missing: no answer in 2 s"'


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"[]", "without a JSON object"),
        (b"{", "without a JSON object"),
        (b'{"items": 1}', "without a list"),
        (b'{"metadata": {"continue": 1}, "items": []}', "without a list"),
        (b'{"items": [' + b'{"metadata":{"name":"x","namespace":"mixed"}},' * 9_000 + b"{}]}", "more than"),
    ],
    ids=["list", "half", "items", "token", "huge"],
)
def test_an_answer_that_is_no_list_is_a_warning(world: World, body: bytes, problem: str) -> None:
    world.hostile.says("200 OK", body)
    answer = world.user("alice", "mixed").send("GET", "/api/v1/namespaces/mixed/pods")
    assert [pod["metadata"]["name"] for pod in answer.json()["items"]] == ["east-m"]
    assert problem in answer.headers["warning"]


def test_objects_of_other_namespaces_and_shapes_are_left_out(world: World) -> None:
    odd = [1, None, {}, {"metadata": {}}, {"metadata": {"name": 1}}, {"metadata": {"name": "x", "namespace": "shop"}}]
    good = {"kind": "Secret", "metadata": {"name": "ok", "namespace": "odd"}, "spec": None}
    world.hostile.says("200 OK", orjson.dumps({"metadata": {"resourceVersion": "1"}, "items": [*odd, good]}))
    [shown] = world.user("alice", "odd").list("pods")["items"]
    assert (shown["metadata"]["name"], shown["kind"]) == ("hostile-ok", "Pod")


def test_a_member_that_ignores_limits_and_never_ends_its_pages_ends_no_request_of_ours(world: World) -> None:
    pod = {"metadata": {"name": "a", "namespace": "odd"}}
    world.hostile.says(
        "200 OK", orjson.dumps({"metadata": {"resourceVersion": "1", "continue": "more"}, "items": [pod] * 7})
    )
    page = world.user("alice", "odd").list("pods", limit=5)
    assert len(page["items"]) == 7
    assert page["metadata"]["continue"]


def test_no_request_has_credentials_of_the_user_or_lacks_his_name(world: World) -> None:
    world.hostile.says("200 OK", b'{"items": []}')
    alice = world.user("alice", "odd")
    alice.send("GET", "/api/v1/namespaces/odd/pods", headers={"cookie": "a=b"})
    head = world.hostile.last()
    assert head["impersonate-user"] == ["alice"]
    assert head["authorization"] == ["Bearer federation-secret"]
    assert "cookie" not in head
    line = world.hostile.received[-1].split(b"\r\n")[0].decode().split(" ")[1]
    assert urlsplit(line).path == "/api/v1/namespaces/odd/pods"
    assert parse_qs(urlsplit(line).query)["limit"] == ["500"]


# Watches


def test_a_watch_goes_on_where_the_list_ended(world: World) -> None:
    version = world.admin.list("pods")["metadata"]["resourceVersion"]
    with world.admin.watch("pods", resourceVersion=version, timeoutSeconds=300) as watch:
        world.members["east"].create("pods", a_pod("new"))
        assert watch.next()[1]["metadata"]["name"] == "east-new"
        world.members["east"].delete("pods", "new", {"gracePeriodSeconds": 0})
        assert watch.said(1) == [("DELETED", "east-new")]
        world.admin.create("pods", a_pod("own"))
        assert watch.said(1) == [("ADDED", "own")]
    world.admin.delete("pods", "own", {"gracePeriodSeconds": 0})


def test_a_watch_without_a_start_begins_with_all_pods_and_takes_new_clusters(world: World) -> None:
    with world.admin.watch("pods", namespace="bank", timeoutSeconds=300) as watch:
        assert watch.said(1) == [("ADDED", "east-b-vault")]
        world.host.loop.call_soon_threadsafe(world.place, "bank", ("east", "east-b"), PLACEMENTS["bank"])
        assert watch.said(1) == [("ADDED", "east-foreign")]
    world.place("bank", PLACEMENTS["bank"], ("east", "east-b"))


def test_a_watch_from_another_revision_tells_the_client_to_list_again(world: World) -> None:
    with world.admin.watch("pods", resourceVersion="7", timeoutSeconds=300) as watch:
        type_, status = watch.next()
    assert (type_, status["code"]) == ("ERROR", 410)


def test_a_streaming_list_is_refused_so_that_clients_list(world: World) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with refused(422, text="sendInitialEvents"), world.admin.watch("pods", **query):
        pass
