"""Requests to members through the host: whose rights they have, what travels, and members that hang, flood or lie."""

import asyncio
import itertools
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import orjson
import pytest
import yaml
from tests.support.apiserver import Parts, api_server
from tests.support.hostilemember import HostileMember, hostile_member
from tests.support.rest import Api, Refused, eventually, refused
from wsproto import ConnectionType, WSConnection
from wsproto.events import Request as Handshake

from federation.api.crds import crd_manifests
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.client.kubeconfig import load_kubeconfig
from federation.client.pool import ClusterPool
from federation.memberproxy.connector import MemberProxy, MemberProxyOptions
from federation.memberproxy.mergedtokens import Position, encode_position
from federation.memberproxy.placedclusters import PlacedClusters
from federation.memberproxy.search import Search
from federation.simulator.hostusers import OBJECTS
from federation.web.ui.credentials import Credentials
from federation.web.ui.terminalscreen import why_not_any_more
from federation.web.ui.userapi import UserAPI

pytestmark = pytest.mark.xdist_group("member-proxy")
CLUSTERS = "/apis/core.kubeadmiral.io/v1alpha1/federatedclusters"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OPTIONS = MemberProxyOptions(
    requests_max=3, streams_max=3, user_streams_max=2, head_s_max=4.0, idle_s_max=2.0, body_bytes_max=1000
)
MIB = 1024 * 1024


def through(cluster: str, path: str) -> str:
    return f"{CLUSTERS}/{cluster}/proxy{path}"


# A host with a real and a hostile member


@dataclass
class World:
    host: Parts
    member: Api
    pool: ClusterPool
    hostile: HostileMember
    admin: Api
    stack: ExitStack
    users: dict[tuple[str, ...], Api] = field(default_factory=dict)

    def user(self, name: str, *groups: str) -> Api:
        """Return the API of a user of the host."""
        if (name, *groups) not in self.users:
            token = self.host.token_file.add(user=name, groups=groups)
            ca = self.host.pki.ca_certificate.read_bytes()
            api = Api(Connection(self.host.server, ca_data=ca, token=token), "shop")
            self.users[name, *groups] = self.stack.enter_context(closing(api))
        return self.users[name, *groups]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pool = ClusterPool()
    placed = PlacedClusters(pool)
    # Something of namespace `shop` runs in east, something of `office` elsewhere.
    for namespace, cluster in (("shop", "east"), ("office", "west")):
        placement = [{"controller": "scheduler", "placement": [{"cluster": cluster}]}]
        placed.changed(None, {"metadata": {"namespace": namespace}, "spec": {"placements": placement}})
    key = ("core.kubeadmiral.io", "v1alpha1", "federatedclusters", "proxy")
    with (
        api_server(tmp_path_factory.mktemp("member")) as east,
        api_server(
            tmp_path_factory.mktemp("host"),
            connectors={key: MemberProxy(pool, OPTIONS, placed, Search(pool, placed, SystemClock()))},
        ) as host,
        hostile_member() as hostile,
        ExitStack() as stack,
        closing(Api(load_kubeconfig(east.kubeconfig), "shop")) as member,
        closing(Api(load_kubeconfig(east.kubeconfig), "kube-admiral-system")) as system,
        closing(Api(load_kubeconfig(host.kubeconfig), "shop")) as admin,
    ):
        for namespace in ("shop", "kube-admiral-system"):
            member.create("namespaces", {"metadata": {"name": namespace}})
        for namespace in ("shop", "office"):
            admin.create("namespaces", {"metadata": {"name": namespace}})
        member.create("namespaces", {"metadata": {"name": "office"}})
        for crd in crd_manifests():
            if crd["metadata"]["name"].startswith("federatedclusters."):
                admin.create("customresourcedefinitions", crd)
        system.create("serviceaccounts", {"metadata": {"name": "federation"}})
        path = "/api/v1/namespaces/kube-admiral-system/serviceaccounts/federation/token"
        token = system.send("POST", path, {"spec": {}}).json()["status"]["token"]
        # The federation's account may do everything itself, so that any use of its own rights shows.
        _bind(system, "account", "cluster-admin", "system:serviceaccount:kube-admiral-system:federation")
        ca = east.pki.ca_certificate.read_bytes()
        pool.set_connection("east", Connection(east.server, ca_data=ca, token=token))
        pool.set_connection("hostile", Connection(f"http://127.0.0.1:{hostile.port}", token="federation-secret"))
        rule = {"apiGroups": ["core.kubeadmiral.io"], "resources": ["federatedclusters/proxy"], "verbs": ["*"]}
        admin.create("clusterroles", {"metadata": {"name": "proxy"}, "rules": [rule]})
        for name in ("alice", "bob", "system:serviceaccount:shop:robot"):
            _bind(admin, f"proxy-{name.rpartition(':')[2]}", "proxy", name)
        _bind(member, "alice", "view", "alice")
        for name in ("viewer", "editor", "secretary"):  # they may do everything in the member
            _bind(member, name, "cluster-admin", name)
        for name, role, namespace in (
            ("viewer", "view", "shop"),
            ("editor", "edit", "shop"),
            ("guest", "view", "shop"),
            ("secretary", "edit", "office"),
        ):
            _bind_in(admin, namespace, name, role)
        _bind(member, "robot", "cluster-admin", "system:serviceaccount:shop:robot")
        made = World(host, system, pool, hostile, admin, stack)
        eventually(lambda: _may(made.user("alice"), through("east", "/api/v1/namespaces/shop/pods")))
        yield made
        host.run(pool.close())


def _bind(api: Api, name: str, role: str, user: str) -> None:
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    body = {
        "metadata": {"name": name},
        "subjects": [subject],
        "roleRef": {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"},
    }
    api.create("clusterrolebindings", body)


def _bind_in(api: Api, namespace: str, user: str, role: str) -> None:
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": user}, "subjects": [subject], "roleRef": reference}
    api.send("POST", f"{RBAC}/namespaces/{namespace}/rolebindings", body)


def _may(api: Api, path: str) -> bool:
    try:
        return api.send("GET", path).status_code == 200
    except Refused:
        return False


# Whose rights


def test_the_member_decides_about_the_user(world: World) -> None:
    alice = world.user("alice")
    assert alice.send("GET", through("east", "/api/v1/namespaces/shop/pods")).json()["kind"] == "PodList"
    with refused(403, text='User "alice" cannot list resource "secrets"'):
        alice.send("GET", through("east", "/api/v1/namespaces/shop/secrets"))
    with refused(403, text='User "alice" cannot create resource "configmaps"'):
        alice.send("POST", through("east", "/api/v1/namespaces/shop/configmaps"), {"metadata": {"name": "x"}})


def test_a_user_without_rights_in_the_member_gets_none(world: World) -> None:
    with refused(403, text='User "bob" cannot list resource "pods"'):
        world.user("bob").send("GET", through("east", "/api/v1/namespaces/shop/pods"))


def test_the_host_decides_who_may_use_the_proxy(world: World) -> None:
    with refused(403, text='cannot get resource "federatedclusters/proxy"'):
        world.user("mallory").send("GET", through("east", "/version"))
    with refused(403, text='cannot delete resource "federatedclusters/proxy"'):
        world.user("mallory").send("DELETE", through("east", "/api/v1/namespaces/shop"))


def test_a_role_in_a_namespace_does_not_open_the_proxy(world: World) -> None:
    admin = world.admin
    subject = {"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
    admin.create("rolebindings", {"metadata": {"name": "mallory"}, "subjects": [subject], "roleRef": role})
    mallory = world.user("mallory")
    eventually(lambda: _may(mallory, "/api/v1/namespaces/shop/pods"))
    inside = "/apis/core.kubeadmiral.io/v1alpha1/namespaces/shop/federatedclusters/east/proxy/api/v1/namespaces"
    with pytest.raises(Refused) as caught:
        mallory.send("GET", inside)
    assert caught.value.code in (403, 404)


# A role in a namespace of the host

PODS = "/api/v1/namespaces/shop/pods"


def test_a_role_in_a_namespace_reads_there_in_the_clusters_of_the_namespace(world: World) -> None:
    for name in ("viewer", "editor"):
        eventually(lambda name=name: _may(world.user(name), through("east", PODS)))
        assert world.user(name).send("GET", through("east", f"{PODS}?limit=1")).json()["kind"] == "PodList"
    assert _may(world.user("editor"), through("east", "/api/v1/namespaces/shop/secrets"))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/shop/secrets"),
        ("GET", "/api/v1/namespaces/shop/secrets?watch=true"),
        ("GET", "/api/v1/namespaces/office/pods"),
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/watch/namespaces/shop/pods"),
        ("GET", "/version"),
        ("GET", "/metrics"),
        ("GET", f"{PODS}/web/exec?command=sh"),
        ("GET", f"{PODS}/web/proxy/"),
        ("POST", PODS),
        ("PUT", f"{PODS}/web"),
        ("PATCH", f"{PODS}/web"),
        ("DELETE", f"{PODS}/web"),
        ("DELETE", PODS),
    ],
)
def test_it_gives_no_more_in_a_member_than_on_the_host(world: World, method: str, path: str) -> None:
    viewer = world.user("viewer")
    eventually(lambda: _may(viewer, through("east", PODS)))
    with refused(403, text="federatedclusters/proxy"):
        viewer.send(method, through("east", path), {} if method in ("POST", "PUT", "PATCH") else None)


def test_even_who_edits_a_namespace_writes_nothing_in_a_member(world: World) -> None:
    editor = world.user("editor")
    eventually(lambda: _may(editor, through("east", PODS)))
    for method, path in (("POST", PODS), ("DELETE", f"{PODS}/web"), ("POST", f"{PODS}/web/eviction")):
        with refused(403, text="federatedclusters/proxy"):
            editor.send(method, through("east", path), {} if method == "POST" else None)


@pytest.mark.parametrize(
    "path", [f"{PODS}/../../office/pods", f"{PODS}/%2e%2e/%2e%2e/office/secrets", "/api/v1/namespaces/shop//pods"]
)
def test_a_path_cannot_leave_the_namespace(world: World, path: str) -> None:
    viewer = world.user("viewer")
    eventually(lambda: _may(viewer, through("east", PODS)))
    lines = [f"GET {through('east', path)} HTTP/1.1", "Host: x", "Connection: close"]
    lines += [f"Authorization: Bearer {viewer.connection.token}", "", ""]
    code = _raw(world, "\r\n".join(lines).encode()).split()[1]
    assert code in (b"400", b"403")


def test_the_member_still_decides(world: World) -> None:
    guest = world.user("guest")
    eventually(lambda: _may(guest, PODS))
    with refused(403, text='User "guest" cannot list resource "pods"'):
        guest.send("GET", through("east", PODS))


def test_a_cluster_without_anything_of_the_namespace_is_closed(world: World) -> None:
    secretary = world.user("secretary")
    eventually(lambda: _may(secretary, "/api/v1/namespaces/office/pods"))
    for cluster in ("east", "hostile", "unknown"):
        with refused(403, text="federatedclusters/proxy"):
            secretary.send("GET", through(cluster, "/api/v1/namespaces/office/pods"))


def test_a_search_shows_a_tenant_the_clusters_of_the_namespace_only(world: World) -> None:
    settings = {"metadata": {"name": "settings", "namespace": "shop"}, "data": {"a": "1"}}
    path = "/api/v1/namespaces/shop/configmaps"
    with suppress(Refused):
        world.member.send("POST", path, settings)
    viewer = world.user("viewer")
    eventually(lambda: _may(viewer, through("east", PODS)))
    answer = viewer.send("GET", through("*", path))
    found = answer.json()
    assert found["kind"] == "ConfigMapList"
    assert [each["data"] for each in found["items"] if each["metadata"]["name"] == "east-settings"] == [{"a": "1"}]
    assert {each["metadata"]["annotations"]["kubeadmiral.io/cluster"] for each in found["items"]} == {"east"}
    assert "hostile" not in answer.text + str(answer.headers)
    secretary = world.user("secretary")
    eventually(lambda: _may(secretary, "/api/v1/namespaces/office/pods"))
    found = secretary.send("GET", through("*", "/api/v1/namespaces/office/configmaps")).json()
    assert (found["kind"], found["items"]) == ("List", [])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/shop/secrets"), ("GET", "/api/v1/namespaces/office/configmaps"),
        ("GET", "/api/v1/configmaps"), ("GET", "/api/v1/nodes"), ("GET", "/version"), ("GET", f"{PODS}?watch=true"),
        ("GET", "/api/v1/watch/namespaces/shop/pods"), ("GET", f"{PODS}/web"), ("GET", f"{PODS}/web/log"),
        ("DELETE", PODS), ("POST", PODS),
    ],
)  # fmt: skip
def test_a_search_gives_no_more_than_the_host(world: World, method: str, path: str) -> None:
    viewer = world.user("viewer")
    eventually(lambda: _may(viewer, through("*", PODS)))
    with refused(403, text="federatedclusters/proxy"):
        place, _, query = path.partition("?")
        viewer.send(method, through("*", place), {} if method == "POST" else None, **dict(parse_qsl(query)))


def test_each_member_decides_about_the_user_of_a_search(world: World) -> None:
    guest = world.user("guest")
    eventually(lambda: _may(guest, PODS))
    with refused(403, text='User "guest" cannot list resource "pods"'):
        guest.send("GET", through("*", PODS))


def test_a_forged_page_names_no_cluster_that_is_hidden(world: World) -> None:
    viewer = world.user("viewer")
    eventually(lambda: _may(viewer, through("*", PODS)))
    token = encode_position(Position({"hostile": "5", "east": "5"}, "east"))
    answer = viewer.send("GET", through("*", PODS), **{"continue": token})
    assert answer.json()["kind"] == "PodList"
    assert "hostile" not in str(answer.headers)


@pytest.mark.parametrize("path", ["/version", f"{PODS}/web", f"{PODS}?watch=true"])
def test_only_lists_are_read_from_all_clusters(world: World, path: str) -> None:
    with refused(400, text="only lists of objects are read from all clusters"):
        place, _, query = path.partition("?")
        world.user("alice").send("GET", through("*", place), **dict(parse_qsl(query)))


@pytest.mark.parametrize("group", ["system:masters", "system:nodes", "system:serviceaccounts:kube-system"])
def test_a_group_of_the_host_system_is_none_of_the_member(world: World, group: str) -> None:
    root = world.user("root", "system:masters", group)
    with refused(403, text='User "root" cannot list resource "secrets"'):
        root.send("GET", through("east", "/api/v1/namespaces/shop/secrets"))


def test_a_service_account_of_the_host_has_no_rights_of_its_namesake(world: World) -> None:
    robot = world.user("system:serviceaccount:shop:robot", "system:serviceaccounts")
    with refused(403, text='User "federation:system:serviceaccount:shop:robot" cannot list resource "secrets"'):
        robot.send("GET", through("east", "/api/v1/namespaces/shop/secrets"))


@pytest.mark.parametrize("name", ["", " ", "alice ", " alice", "alice\t"])
def test_a_name_that_could_arrive_as_another_is_refused(world: World, name: str) -> None:
    api = world.user(name, "system:masters")
    before = len(world.hostile.received)
    for cluster in ("east", "hostile"):
        with pytest.raises(Refused) as caught:
            api.send("GET", through(cluster, "/api/v1/namespaces/shop/secrets"))
        assert caught.value.code in (401, 403)
    assert len(world.hostile.received) == before


def test_without_the_right_to_impersonate_nothing_is_passed_on(world: World) -> None:
    account = world.member
    account.create("serviceaccounts", {"metadata": {"name": "weak"}})
    path = "/api/v1/namespaces/kube-admiral-system/serviceaccounts/weak/token"
    token = account.send("POST", path, {"spec": {}}).json()["status"]["token"]
    _bind(account, "weak", "view", "system:serviceaccount:kube-admiral-system:weak")
    strong = world.pool.connection("east")
    assert strong is not None
    weak = Connection(strong.server, ca_data=strong.ca_data, token=token)
    world.host.run(_set(world.pool, "weak", weak))
    with refused(403, text="does not let the federation act for its users"):
        world.user("alice").send("GET", through("weak", "/api/v1/namespaces/shop/pods"))


async def _set(pool: ClusterPool, name: str, connection: Connection) -> None:
    pool.set_connection(name, connection)


def test_the_example_gives_exactly_the_rights_of_simulated_members() -> None:
    folder = Path(__file__).parents[2] / "examples" / "member-proxy"
    found = [obj for name in ("impersonation", "administrators") for obj in _load(folder / f"{name}.yaml")]
    assert found == [obj for _, obj in OBJECTS]


def _load(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


# What travels


def test_credentials_and_claims_of_the_client_stay_here(world: World) -> None:
    world.hostile.says("200 OK", b"{}", "Set-Cookie: a=b", "Access-Control-Allow-Origin: *")
    alice = world.user("alice", "shop")
    forged = {
        "Cookie": "session=1",
        "Impersonate_User": "root",
        "Impersonate-Uid_": "7",
        "X-Remote-User": "root",
        "X-Forwarded-For": "10.0.0.1",
        "Proxy-Authorization": "Basic YTpi",
        "X-Kept": "yes",
    }
    answer = alice.http.get(through("hostile", "/api"), headers=forged)
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers
    sent = world.hostile.last()
    assert sent["authorization"] == ["Bearer federation-secret"]
    assert sent["impersonate-user"] == ["alice"]
    assert sent["impersonate-group"] == ["shop"]
    assert sent["x-kept"] == ["yes"]
    assert alice.connection.token.encode() not in world.hostile.received[-1]
    for name in ("cookie", "impersonate_user", "impersonate-uid_", "x-remote-user", "proxy-authorization"):
        assert name not in sent
    assert sent["x-forwarded-for"] == ["127.0.0.1"]


def test_who_impersonates_on_the_host_needs_the_right_there(world: World) -> None:
    with refused(403, text='cannot impersonate resource "users"'):
        world.user("bob").send("GET", through("east", "/api"), headers={"Impersonate-User": "alice"})


def test_an_administrator_acts_as_the_user_whom_he_names(world: World) -> None:
    root = world.user("root", "system:masters")
    headers = {"Impersonate-User": "alice"}
    assert root.send("GET", through("east", "/api/v1/namespaces/shop/pods"), headers=headers).status_code == 200
    with refused(403, text='User "alice" cannot list resource "secrets"'):
        root.send("GET", through("east", "/api/v1/namespaces/shop/secrets"), headers=headers)


@pytest.mark.parametrize("path", ["/a/../b", "//b", "/a/./b", "/..", "/%2e%2e/x", "/a/%2e%2e/b"])
def test_a_path_that_two_servers_read_differently_is_refused(world: World, path: str) -> None:
    before = len(world.hostile.received)
    lines = [f"GET {through('hostile', path)} HTTP/1.1", "Host: x", "Connection: close"]
    lines += [f"Authorization: Bearer {world.user('alice').connection.token}", "", ""]
    assert b" 400 " in _raw(world, "\r\n".join(lines).encode()).split(b"\r\n")[0]
    assert len(world.hostile.received) == before


def _raw(world: World, request: bytes) -> bytes:
    url = httpx.URL(world.host.server)
    context = ssl.create_default_context(cafile=str(world.host.pki.ca_certificate))
    with (
        socket.create_connection((url.host, url.port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=url.host) as connection,
    ):
        connection.sendall(request)
        answer = b""
        while data := connection.recv(65536):
            answer += data
        return answer


def test_a_body_above_the_limit_is_refused(world: World) -> None:
    world.hostile.says("200 OK")
    alice = world.user("alice")
    with refused(413):
        alice.send("POST", through("hostile", "/api"), {"data": "x" * 2000})

    pieces = itertools.repeat(b"x" * 100, 30)
    world.hostile.answer = hangs  # an answer that begins before the limit is reached cannot become a refusal
    assert alice.http.post(through("hostile", "/api"), content=pieces).status_code == 413


# Members that hang, flood or lie


_is_over = threading.Event()


@pytest.fixture(autouse=True)
def _release_the_member() -> Iterator[None]:
    """End the silence of the member with the test, however long the test takes."""
    _is_over.clear()
    yield
    _is_over.set()


def hangs(_: bytes) -> Iterator[bytes]:
    _is_over.wait(60)
    yield b""


def test_a_member_that_hangs_holds_a_few_requests(world: World) -> None:
    world.hostile.answer = hangs
    alice = world.user("alice")

    async def send() -> list[int]:
        context = alice.connection.to_tls()
        assert context is not None
        headers = {"Authorization": f"Bearer {alice.connection.token}"}
        async with httpx.AsyncClient(
            base_url=alice.connection.server, verify=context, headers=headers, trust_env=False, timeout=60
        ) as client:
            path = through("hostile", "/api")
            assert (await client.get(path, params={"timeout": "1s"})).status_code == 504
            before, held = len(world.hostile.received), [asyncio.ensure_future(client.get(path)) for _ in range(3)]
            await asyncio.to_thread(eventually, lambda: len(world.hostile.received) == before + 3)
            more = await asyncio.gather(*(client.get(path) for _ in range(3)))
            assert (await client.get(through("east", "/version"))).status_code == 200
            _is_over.set()
            return [answer.status_code for answer in (*more, *await asyncio.gather(*held))]

    assert asyncio.run(send()) == [429] * 3 + [503] * 3


def test_a_watch_that_does_not_begin_ends(world: World) -> None:
    world.hostile.answer = hangs
    with refused(504, text='cluster "hostile" did not answer within 4 s'):
        world.user("alice").send("GET", through("hostile", "/api/v1/pods"), watch="1")


def test_a_watch_that_says_nothing_ends(world: World) -> None:
    def silent(_: bytes) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
        _is_over.wait(60)

    world.hostile.answer = silent
    answer = world.user("alice").http.get(through("hostile", "/api/v1/pods"), params={"watch": "1"})
    assert (answer.status_code, answer.content) == (200, b"")


def flood(_: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    yield from itertools.repeat(b" " * 65536, 16384)


def test_a_flood_waits_for_a_client_that_does_not_read_and_ends_with_it(world: World) -> None:
    world.hostile.answer = flood
    before = world.hostile.sent_bytes
    with world.user("alice").http.stream("GET", through("hostile", "/api")) as stream:
        next(stream.iter_raw())
        assert world.host.run(_answers(world))
    eventually(lambda: world.hostile.open == 0)
    assert world.hostile.sent_bytes - before < 64 * MIB


async def _answers(world: World) -> bool:
    return world.host.authorizer.has_synced


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_not_followed_nor_passed_on(world: World, status: str) -> None:
    world.hostile.says(status, b"", f"Location: http://127.0.0.1:{world.hostile.port}/elsewhere")
    before = len(world.hostile.received)
    with refused(502, text="redirects and upgrades are not passed on"):
        world.user("alice").send("GET", through("hostile", "/api"))
    assert len(world.hostile.received) == before + 1


def test_a_refusal_of_the_federation_does_not_look_like_one_of_the_user(world: World) -> None:
    world.hostile.says("401 Unauthorized", b"", "WWW-Authenticate: Basic")
    with refused(503, text='cluster "hostile" rejects the credentials of the federation'):
        world.user("alice").send("GET", through("hostile", "/api"))


def test_an_endless_refusal_is_not_gathered(world: World) -> None:
    def endless(_: bytes) -> Iterator[bytes]:
        yield b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n\r\n"
        yield from itertools.repeat(b"x" * 65536, 64)

    world.hostile.answer = endless
    answer = world.user("alice").http.get(through("hostile", "/api"))
    assert (answer.status_code, len(answer.content)) == (403, 64 * 65536)


@pytest.mark.parametrize(
    "said", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"]
)
def test_nonsense_becomes_an_error(world: World, said: bytes) -> None:
    world.hostile.answer = lambda _: iter([said])
    with pytest.raises(Refused) as caught:
        world.user("alice").send("GET", through("hostile", "/api"))
    assert caught.value.code in (502, 503)


def test_users_cannot_open_the_circuit_of_the_controllers(world: World) -> None:
    world.hostile.answer = lambda _: iter(())
    alice, guard = world.user("alice"), world.pool.breaker("hostile")
    assert guard is not None
    for _ in range(20):
        with refused(503):
            alice.send("GET", through("hostile", "/api"))
    assert guard.try_acquire()


def test_an_unknown_cluster_is_not_found(world: World) -> None:
    with refused(404, text="west"):
        world.user("alice").send("GET", through("west", "/api"))


# Connections


def handshake(world: World, user: Api, path: str, *subprotocols: str) -> bytes:
    """Return the start of the answer to a WebSocket handshake."""
    headers = [(b"authorization", f"Bearer {user.connection.token}".encode())]
    host = httpx.URL(world.host.server).host
    opened = WSConnection(ConnectionType.CLIENT).send(
        Handshake(host=host, target=path, subprotocols=list(subprotocols), extra_headers=headers)
    )
    return _raw(world, opened)


EXEC = "/api/v1/namespaces/shop/pods/web/exec?command=id&stdout=true"


def test_a_redirected_handshake_is_not_followed(world: World) -> None:
    world.hostile.says("302 Found", b"", f"Location: http://127.0.0.1:{world.hostile.port}/elsewhere")
    before = len(world.hostile.received)
    answer = handshake(world, world.user("alice"), through("hostile", EXEC), "v5.channel.k8s.io")
    assert answer.startswith(b"HTTP/1.1 503")
    assert len(world.hostile.received) == before + 1


def test_a_token_among_subprotocols_is_not_passed_on(world: World) -> None:
    world.hostile.says("403 Forbidden")
    secret = "base64url.bearer.authorization.k8s.io.c2VjcmV0"
    answer = handshake(world, world.user("alice"), through("hostile", EXEC), secret, "v5.channel.k8s.io")
    assert b"HTTP/1.1 4" in answer[:12]
    assert b"c2VjcmV0" not in b"".join(world.hostile.received)


def test_a_connection_needs_the_right_to_create(world: World) -> None:
    admin = world.admin
    rule = {"apiGroups": ["core.kubeadmiral.io"], "resources": ["federatedclusters/proxy"], "verbs": ["get"]}
    admin.create("clusterroles", {"metadata": {"name": "reader"}, "rules": [rule]})
    _bind(admin, "reader", "reader", "reader")
    reader = world.user("reader")
    world.hostile.says("200 OK", b"{}")
    eventually(lambda: _may(reader, through("hostile", "/api")))
    before = len(world.hostile.received)
    pod, service = "/api/v1/namespaces/shop/pods/web", "/api/v1/namespaces/shop/services/web"
    for path in (EXEC, f"{EXEC}&watch=true", f"{pod}/exec/log?command=id", f"{pod}/attach", f"{service}/proxy/log"):
        answer = handshake(world, reader, through("hostile", path), "v5.channel.k8s.io")
        assert answer.startswith(b"HTTP/1.1 403"), path
        assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["message"].count("cannot create") == 1
    assert len(world.hostile.received) == before
    # A log only reads, so the member gets an ordinary request.
    world.hostile.says("200 OK", b"a line")
    assert handshake(world, reader, through("hostile", f"{pod}/log"), "binary.k8s.io").startswith(b"HTTP/1.1 101")
    assert b"upgrade" not in world.hostile.received[-1].lower()


def test_a_right_that_the_member_took_away_ends_a_terminal(world: World) -> None:
    rule = {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}
    for api in (world.admin, world.member):
        api.create("clusterroles", {"metadata": {"name": "typist"}, "rules": [rule]})
        _bind(api, "typist", "typist", "carol")
    _bind(world.admin, "proxy-carol", "proxy", "carol")
    user = UserAPI(world.host.app, Credentials(token=world.user("carol").connection.token), {"headers": []})

    def why_not() -> str:
        return world.host.run(why_not_any_more(user, "shop", "web", "east", "web"))

    eventually(lambda: why_not() == "")
    world.member.delete("clusterrolebindings", "typist")
    eventually(lambda: why_not() == "you may no longer run commands in this pod of east")
