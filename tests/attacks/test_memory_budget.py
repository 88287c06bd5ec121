"""A memory budget: under each hostile input the server stays below twice its idle memory and 64 MB.

A real `fedctl serve` process gets the inputs of clients one after another; the kernel's peak of its resident memory is
reset before each. Inputs of members come from proxies in front of a real API server; they share another process, without
the memory that the allocator keeps after the large requests of clients.
"""

import contextlib
import functools
import itertools
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from tests.support.apiserver import api_server
from tests.support.federation import Federation, eventually, start_serve
from tests.support.hostile.gzipbomb import a_gzip_bomb
from tests.support.rest import APPLY, JSON_PATCH, MERGE, TABLE, Api, Refused

from federation.client.kubeconfig import load_kubeconfig

MIB = 1024 * 1024
HEADROOM = 64 * MIB
BOMB_MIB = 600
"""Nearly twice the budget, and as much as any test has to decompress if nothing stops it."""
_MEMBER_S = 60.0


class Server:
    """The process under attack."""

    def __init__(self, federation: Federation) -> None:
        self.federation = federation
        self.api = Api(load_kubeconfig(federation.directory / "kubeconfig"), "default")
        self.process = Path(f"/proc/{federation.process.pid}")
        self.api.list("configmaps")
        self.idle = self.memory("VmRSS")
        self.budget = 2 * self.idle + HEADROOM

    def memory(self, field: str) -> int:
        """Return a field of the process's status in bytes."""
        lines = (self.process / "status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))

    def peak_during(self, attack: Callable[[], None]) -> int:
        """Return the peak of resident memory during an attack, in bytes."""
        (self.process / "clear_refs").write_text("5")
        attack()
        self.api.list("configmaps", limit=1)  # the server still answers
        return self.memory("VmHWM")

    def send(self, method: str, path: str, body: Any = None, type_: str = "application/json", **query: Any) -> int:
        """Send a request that may be refused; return its code."""
        code = self._code_of(method, path, body, type_, query)
        assert code < 500
        return code

    def _code_of(self, method: str, path: str, body: Any, type_: str, query: dict[str, Any]) -> int:
        try:
            return self.api.send(method, path, body, type_=type_, **query).status_code
        except Refused as refusal:
            return refusal.code


@contextlib.contextmanager
def a_server(directory: Path, **environment: str) -> Iterator[Server]:
    with contextlib.closing(start_serve(directory, is_fresh=True, **environment)) as federation:
        server = Server(federation)
        yield server
        server.api.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all inputs of clients."""
    with a_server(tmp_path_factory.mktemp("budget") / "state") as found:
        yield found


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all inputs of members. It refuses their answers sooner, so that less is decompressed."""
    limit = {"FEDERATION_MEMBER_RESPONSE_BYTES_MAX": str(8 * MIB)}
    with a_server(tmp_path_factory.mktemp("host") / "state", **limit) as found:
        yield found


@pytest.fixture
def real_member(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of the cluster behind a proxy. It is in this process, whose memory is not measured."""
    with api_server(tmp_path) as parts:
        yield parts.kubeconfig


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def a_config_map(name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}


def keys(count: int, prefix: str = "k") -> dict[str, str]:
    return {f"{prefix}{index}": "" for index in range(count)}


def doubling(server: Server) -> None:
    server.send("POST", CONFIG_MAPS, a_config_map("doubled", data={"a": "b"}))
    steps: list[Any] = [{"op": "add", "path": "/data", "value": {"a": []}}]
    steps += [{"op": "copy", "from": "/data/a", "path": "/data/a/-"}] * 26
    assert server.send("PATCH", f"{CONFIG_MAPS}/doubled", steps, JSON_PATCH) >= 400


def empty_keys(server: Server) -> None:
    for number in range(12):
        body = a_config_map(f"wide-{number}", data=keys(190_000))
        assert server.send("POST", CONFIG_MAPS, body) == 413


def nesting(server: Server) -> None:
    for body in (b'{"a":' * 500_000 + b"1" + b"}" * 500_000, b"[" * 2_900_000, b'{"a":' * 580_000):
        assert server.send("POST", CONFIG_MAPS, body) in (400, 413)


def aliases(server: Server) -> None:
    bomb = b"a: &a [x, x]\n" + b"".join(
        b"%c: &%c [*%c, *%c, *%c, *%c]\n" % (c, c, *[c - 1] * 4) for c in range(98, 118)
    )
    assert server.send("POST", CONFIG_MAPS, bomb, "application/yaml") == 400


def compressed(server: Server) -> None:
    assert server.send("POST", CONFIG_MAPS, a_gzip_bomb(BOMB_MIB), headers={"content-encoding": "gzip"}) in (400, 415)


def big_array(server: Server) -> None:
    for body in (b"[" + b"[]," * 966_000 + b"[]]", b'{"a":[' + b"{}," * 966_000 + b"{}]}"):
        assert server.send("POST", CONFIG_MAPS, body) in (400, 413)


def big_texts(server: Server) -> None:
    """Forty requests of almost three megabytes at once."""
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda n: server.send(
                    "POST", CONFIG_MAPS, a_config_map(f"text-{n}", data={"a": "x" * 2_900_000}), dryRun="All"
                ),
                range(40),
            )
        )


def selectors(server: Server) -> None:
    listed = ",".join(f"v{n}" for n in range(5_000))
    for query in ({"labelSelector": f"a in ({listed})"}, {"labelSelector": ",".join(f"k{n}!=v" for n in range(2_000))}):
        for _ in range(10):
            assert server.send("GET", CONFIG_MAPS, **query) in (200, 400, 431)
    for number in range(100):
        server.send("GET", CONFIG_MAPS, labelSelector=f"a{number} in ({listed})")


def managers(server: Server) -> None:
    """Appliers that own the same fields together, each with a large entry in managedFields."""
    server.send("POST", CONFIG_MAPS, a_config_map("shared"))
    body = a_config_map("shared", data=keys(60_000))
    codes = {server.send("PATCH", f"{CONFIG_MAPS}/shared", body, APPLY, fieldManager=f"m{n}") for n in range(8)}
    assert 413 in codes
    server.send("DELETE", f"{CONFIG_MAPS}/shared")


def merge_growth(server: Server) -> None:
    """An object that many patches of another part each grow by three megabytes."""
    server.send("POST", CONFIG_MAPS, a_config_map("grown"))
    codes = [
        server.send("PATCH", f"{CONFIG_MAPS}/grown", {"data": {f"a{n}": "x" * 2_900_000}}, MERGE) for n in range(20)
    ]
    assert codes[-1] in (413, 422)
    server.send("DELETE", f"{CONFIG_MAPS}/grown")


def wide_table(server: Server) -> None:
    """A definition whose printer columns all show the whole object."""
    columns = [{"name": f"C{n}", "type": "string", "jsonPath": ".spec"} for n in range(5_000)]
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free}}},
        "additionalPrinterColumns": columns,
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "tables.wide.example.com"},
        "spec": {
            "group": "wide.example.com",
            "scope": "Namespaced",
            "names": {"plural": "tables", "kind": "Row"},
            "versions": [version],
        },
    }
    url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert server.send("POST", url, definition) == 201
    items = "/apis/wide.example.com/v1/namespaces/default/tables"
    obj = {
        "apiVersion": "wide.example.com/v1",
        "kind": "Row",
        "metadata": {"name": "one"},
        "spec": {"a": "x" * 2_900_000},
    }
    assert server.send("POST", items, obj) == 201
    assert server.send("GET", items, accept=TABLE) == 200
    server.send("DELETE", f"{url}/tables.wide.example.com")


def watches(server: Server) -> None:
    """Clients that open watches and never read, while large objects change."""
    server.send("POST", CONFIG_MAPS, a_config_map("watched"))
    address = urlsplit(server.api.connection.server)
    context = server.api.connection.to_tls()
    assert isinstance(context, ssl.SSLContext)
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            plain = stack.enter_context(socket.create_connection((address.hostname, address.port)))
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            secure = stack.enter_context(context.wrap_socket(plain, server_hostname=address.hostname))
            secure.sendall(f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        for number in range(20):
            server.send("PATCH", f"{CONFIG_MAPS}/watched", {"data": {"a": f"{number}" + "x" * 2_000_000}}, MERGE)
    server.send("DELETE", f"{CONFIG_MAPS}/watched")


INPUTS = {
    "a JSON patch that doubles a value": doubling,
    "twelve ConfigMaps of 190,000 keys": empty_keys,
    "deep nesting": nesting,
    "YAML aliases": aliases,
    "a gzip body": compressed,
    "a big array": big_array,
    "forty large bodies at once": big_texts,
    "huge selectors": selectors,
    "many field managers": managers,
    "patches that grow an object": merge_growth,
    "a wide table": wide_table,
    "watches that nobody reads": watches,
}


@pytest.mark.slow("the server is a process of its own; inputs are as large as the limits allow")
@pytest.mark.parametrize("name", INPUTS)
def test_a_client_cannot_exceed_the_memory_budget(server: Server, name: str) -> None:
    peak = server.peak_during(lambda: INPUTS[name](server))
    assert peak < server.budget, f"{name}: {_text(server, peak)}"


def _text(server: Server, peak: int) -> str:
    return f"peak {peak // MIB} MB, idle {server.idle // MIB} MB, budget {server.budget // MIB} MB"


class HostileMember(BaseHTTPRequestHandler):
    """Answers lists of pods as `answer` does, and passes everything else on to a real cluster."""

    protocol_version = "HTTP/1.1"
    real: ClassVar[httpx.Client]
    answer: ClassVar[Callable[["HostileMember"], None]]
    hostile: ClassVar[threading.Event]

    def _serve(self) -> None:
        path = urlsplit(self.path)
        if self.command == "GET" and path.path in ("/api/v1/pods", "/api/v1/nodes"):
            type(self).hostile.set()
            type(self).answer(self)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "watch=" in path.query:
            self.send_body(b"")
            return
        kept = {name: value for name, value in self.headers.items() if name.lower() in ("content-type", "accept")}
        answer = self.real.request(self.command, self.path, content=body, headers=kept)
        self.send_body(answer.content, code=answer.status_code)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def send_body(self, body: bytes, *, code: int = 200, encoding: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def a_large_list(member: HostileMember) -> None:
    part = b'{"metadata":{"name":"x"}},' * 40_000
    member.send_response(200)
    member.send_header("Content-Length", str(600 * MIB))
    member.end_headers()
    with contextlib.suppress(OSError):
        member.wfile.write(b'{"items":[')
        for _ in range(600):
            member.wfile.write(part)


def a_compressed_list(member: HostileMember) -> None:
    member.send_body(a_gzip_bomb(BOMB_MIB), encoding="gzip")


_pages = itertools.count()
_PAGE_OBJECTS = 100
"""The limit is a number of pages, 2,000; their objects would need more memory than the budget."""


@functools.cache
def a_page() -> bytes:
    item = {
        "metadata": {"name": "x" * 200, "namespace": "default", "labels": {"a": "b" * 60}},
        "spec": {"containers": [{}]},
    }
    items = [{**item, "metadata": {**item["metadata"], "name": f"PAGE-{number}"}} for number in range(_PAGE_OBJECTS)]
    return orjson.dumps({"metadata": {"resourceVersion": "5", "continue": "more"}, "items": items})


def endless_pages(member: HostileMember) -> None:
    """Send a page of pods that no other page has."""
    if "/nodes" in member.path:
        member.send_body(b'{"metadata":{"resourceVersion":"5"},"items":[]}')
        return
    member.send_body(a_page().replace(b"PAGE", b"p%d" % next(_pages)))


ANSWERS = {"a list of 600 MB": a_large_list, "a gzip bomb": a_compressed_list, "endless continue tokens": endless_pages}


@pytest.mark.slow("the server is a process of its own, and lists a member until a limit stops it")
@pytest.mark.parametrize("name", ANSWERS)
def test_a_member_cannot_exceed_the_memory_budget(host: Server, real_member: Path, name: str) -> None:
    with hostile_member(real_member, ANSWERS[name]) as url:
        cluster = name.replace(" ", "-").lower()

        a_gzip_bomb(BOMB_MIB)  # made once, before a member has to answer with it

        def attack() -> None:
            join(host, cluster, url)
            assert HostileMember.hostile.wait(_MEMBER_S), "the member was never listed"
            eventually(
                lambda: condition(host, cluster).get("reason"),
                lambda reason: reason == "ClusterLimitExceeded",
                timeout_s=120,
            )

        peak = host.peak_during(attack)
        host.send("DELETE", f"/apis/core.kubeadmiral.io/v1alpha1/federatedclusters/{cluster}")
    assert peak < host.budget, f"{name}: {_text(host, peak)}"


@contextlib.contextmanager
def hostile_member(kubeconfig: Path, answer: Callable[[HostileMember], None]) -> Iterator[str]:
    connection = load_kubeconfig(kubeconfig)
    HostileMember.hostile = threading.Event()
    HostileMember.answer = staticmethod(answer)
    with httpx.Client(
        base_url=connection.server, verify=connection.to_tls() or True, trust_env=False
    ) as HostileMember.real:
        listener = ThreadingHTTPServer(("127.0.0.1", 0), HostileMember)
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.server_address[1]}"
        finally:
            listener.shutdown()
            listener.server_close()
            thread.join(10)


def join(server: Server, name: str, url: str) -> None:
    secret = {"metadata": {"name": name}, "stringData": {"bootstrap-token-data": "token"}}
    server.send("POST", "/api/v1/namespaces/kube-admiral-system/secrets", secret)
    cluster = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "FederatedCluster",
        "metadata": {"name": name},
        "spec": {"apiEndpoint": url, "insecure": True, "secretRef": {"name": name}},
    }
    assert server.send("POST", "/apis/core.kubeadmiral.io/v1alpha1/federatedclusters", cluster) == 201


def condition(server: Server, name: str) -> dict[str, Any]:
    path = f"/apis/core.kubeadmiral.io/v1alpha1/federatedclusters/{name}"
    status = json.loads(server.api.send("GET", path).content).get("status") or {}
    return next((found for found in status.get("conditions") or () if found["type"] == "Ready"), {})
