"""A small aggregated API server: HTTPS on the loopback interface, in a thread, with one namespaced resource.

It trusts requests whose client certificate the front proxy's CA signed, and answers with what it received, so that
tests see what travels. `register` creates the Service and the APIService that lead to it.
"""

import base64
import contextlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import orjson

from federation.apiserver.auth.pki import Authority
from tests.support.rest import Api, Object

SERVICE = "aggregated"
USER_AGENT = f"python-httpx/{httpx.__version__}"
CLASSIC, AGGREGATED = "classic", "aggregated"


@dataclass
class Received:
    """One request as the server got it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    peer: str
    """Common name of the client certificate, "" without one."""

    def values(self, name: str) -> list[str]:
        """Return the values of a header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclass
class AggregatedServer:
    """A running server and all requests that it received."""

    group: str
    port: int
    ca: bytes
    style: str = AGGREGATED
    received: list[Received] = field(default_factory=list)
    is_broken: bool = False
    """Answer every request with 500."""
    is_flooding: bool = False
    """Answer every request with a gigabyte."""
    sent_bytes: int = 0
    """Bytes of those answers that the system accepted."""
    floods: int = 0
    """Answers of that kind that have not ended."""
    is_hanging: threading.Event = field(default_factory=threading.Event)
    """Set: requests wait until `released`."""
    released: threading.Event = field(default_factory=threading.Event)
    next_event: threading.Event = field(default_factory=threading.Event)
    """Lets a watch send its second event."""

    @property
    def bundle(self) -> str:
        """The caBundle that verifies the server."""
        return base64.b64encode(self.ca).decode()

    def api_service(self, namespace: str, **spec: Any) -> Object:
        """Return the APIService of the server behind a Service in a namespace."""
        service = {"namespace": namespace, "name": SERVICE, "port": self.port}
        priorities = {"groupPriorityMinimum": 2000, "versionPriority": 20}
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1.{self.group}"},
            "spec": {"group": self.group, "version": "v1", "service": service, "caBundle": self.bundle}
            | priorities
            | spec,
        }

    def register(self, api: Api, **spec: Any) -> str:
        """Create the Service and the APIService; return the latter's name."""
        external = {"type": "ExternalName", "externalName": "localhost"}
        api.create("services", {"metadata": {"name": SERVICE}, "spec": external})
        created = api.create("apiservices", self.api_service(api.namespace, **spec))
        name: str = created["metadata"]["name"]
        return name

    def requests_of_tests(self) -> list[Received]:
        """Return the requests of `Api`, without those of the control plane and its controllers."""
        return [request for request in self.received if request.values("user-agent")[:1] == [USER_AGENT]]

    def things(self) -> list[Object]:
        return [
            {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "shortNames": ["tg"]}
            | {"verbs": ["create", "delete", "get", "list", "watch"]},
            {"name": "things/echo", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get"]},
        ]

    def aggregated_document(self) -> Object:
        kind = {"group": self.group, "version": "v1", "kind": "Thing"}
        resource = {
            "resource": "things",
            "responseKind": kind,
            "scope": "Namespaced",
            "singularResource": "thing",
            "verbs": ["create", "delete", "get", "list", "watch"],
            "shortNames": ["tg"],
            "subresources": [{"subresource": "echo", "responseKind": kind, "verbs": ["get"]}],
        }
        version = {"version": "v1", "resources": [resource], "freshness": "Current"}
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [{"metadata": {"name": self.group}, "versions": [version]}],
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: AggregatedServer

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as in the base class
        """Write nothing."""

    def _serve(self) -> None:
        served = self.served
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        certificate = self.connection.getpeercert() or {}  # type: ignore[attr-defined]  # a TLS socket
        subject = {key: value for part in certificate.get("subject", ()) for key, value in part}
        request = Received(self.command, self.path, self.headers.items(), body, subject.get("commonName", ""))
        served.received.append(request)
        if served.is_hanging.is_set():
            served.released.wait(60)
        if served.is_flooding:
            self._flood()
            return
        if served.is_broken:
            self._send(500, {"kind": "Status", "status": "Failure", "code": 500})
            return
        url = urlsplit(self.path)
        self._route(request, url.path.strip("/").split("/"), parse_qs(url.query))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve

    def _route(self, request: Received, parts: list[str], query: dict[str, list[str]]) -> None:
        served = self.served
        match parts:
            case ["apis"] if served.style == AGGREGATED:
                content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                self._send(200, served.aggregated_document(), content_type)
            case ["apis", served.group, "v1"]:
                listed = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{served.group}/v1"}
                self._send(200, {**listed, "resources": served.things()})
            case ["openapi", "v3"]:
                name = f"apis/{served.group}/v1"
                self._send(200, {"paths": {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash=ABC123"}}})
            case ["openapi", "v3", "apis", served.group, "v1"]:
                self._send(200, self._openapi())
            case ["apis", served.group, "v1", "namespaces", namespace, "things", *rest]:
                self._things(request, namespace, rest, query)
            case _:
                self._send(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

    def _things(self, request: Received, namespace: str, rest: list[str], query: dict[str, list[str]]) -> None:
        if "watch" in query:
            self._watch(namespace)
        elif not rest and request.method == "GET":
            head = {"kind": "ThingList", "apiVersion": f"{self.served.group}/v1", "metadata": {}}
            self._send(200, {**head, "items": [self._thing(namespace, "one")]})
        elif rest[-1:] == ["redirect"]:
            self.send_response(307)
            self.send_header("Location", "https://example.com/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif rest[-1:] == ["half"]:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"{")
            self.close_connection = True
        else:
            self._send(201 if request.method == "POST" else 200, self._thing(namespace, "/".join(rest) or "new"))

    def _thing(self, namespace: str, name: str) -> Object:
        metadata = {"name": name, "namespace": namespace, "resourceVersion": "1"}
        return {"kind": "Thing", "apiVersion": f"{self.served.group}/v1", "metadata": metadata}

    def _watch(self, namespace: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for name in ("first", "second"):
            line = orjson.dumps({"type": "ADDED", "object": self._thing(namespace, name)}) + b"\n"
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.wfile.flush()
            self.served.next_event.wait(60)
        self.wfile.write(b"0\r\n\r\n")

    def _flood(self) -> None:
        piece = b" " * 65536
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(piece) * 16384))
        self.end_headers()
        self.close_connection = True
        self.served.floods += 1
        with contextlib.suppress(OSError):
            for _ in range(16384):
                self.wfile.write(piece)
                self.served.sent_bytes += len(piece)
        self.served.floods -= 1

    def _openapi(self) -> Object:
        name, group = "com.example.Thing", self.served.group
        kind = {"group": group, "version": "v1", "kind": "Thing"}
        size = {"type": "integer", "description": "How large the thing is."}
        thing = {"type": "object", "properties": {"size": size}, "x-kubernetes-group-version-kind": [kind]}
        listed = {
            "description": "OK",
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}},
        }
        action = {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": kind, "responses": {"200": listed}}
        path = f"/apis/{group}/v1/namespaces/{{namespace}}/things"
        info = {"title": "things", "version": "1"}
        return {
            "openapi": "3.0.0",
            "info": info,
            "paths": {path: {"get": action}},
            "components": {"schemas": {name: thing}},
        }

    def _send(self, status: int, value: Any, content_type: str = "application/json") -> None:
        body = orjson.dumps(value)
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "session=stolen")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def aggregated_server(
    directory: Path, *, group: str, namespace: str, client_ca: str, style: str = AGGREGATED
) -> Iterator[AggregatedServer]:
    """Run a server during the block. `client_ca` is the PEM of the CA of the front proxy's certificate."""
    directory.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    authority = Authority.ensure(directory, now=now, common_name="aggregated")
    certificate, key = directory / "server.crt", directory / "server.key"
    authority.issue_server(certificate, key, names=[f"{SERVICE}.{namespace}.svc"], now=now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(cadata=client_ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    served = AggregatedServer(group, server.server_port, authority.certificate_path.read_bytes(), style)
    handler.served = served  # type: ignore[attr-defined]  # declared by the base class
    thread = threading.Thread(target=server.serve_forever, name="aggregated-server", daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.released.set()
        served.next_event.set()
        server.shutdown()
        server.server_close()
