"""Admission of connections, as kube-apiserver's: policies and webhooks on CONNECT decide before one is opened.

What is admitted is the object that kube-apiserver makes of the query, for example PodExecOptions. A request that is
forwarded to another API server is admitted for the subresource that forwards it, and for the pod, service or node that
it connects to there: what an administrator forbids for `pods/exec` here holds for every way to the same pod. Admission
may change the options, and the request goes on with them.

Decision: docs/decisions/0251-connections-are-admitted-on-every-way.md
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from federation.apimachinery.errors import BadRequest, Forbidden
from federation.apimachinery.paths import ResourcePath
from federation.apimachinery.resources import Object
from federation.apiserver.http.asgi import Request, is_asked
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import WriteOptions

_KINDS: Mapping[tuple[str, str], str] = {
    ("pods", "exec"): "PodExecOptions",
    ("pods", "attach"): "PodAttachOptions",
    ("pods", "portforward"): "PodPortForwardOptions",
    ("pods", "proxy"): "PodProxyOptions",
    ("services", "proxy"): "ServiceProxyOptions",
    ("nodes", "proxy"): "NodeProxyOptions",
}
_FLAGS = ("stdin", "stdout", "stderr", "tty")
_PROXY = "proxy"
_KNOWN = frozenset({*_FLAGS, "container", "command", "ports"})


@dataclass(frozen=True, slots=True)
class Connection:
    """What a request connects to: a subresource of an object, and the path below it."""

    path: ResourcePath
    below: str


class ConnectAdmission:
    """Admits the connections of one registry's users."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def admit(self, request: Request, path: ResourcePath, below: str, *, is_forwarding: bool) -> None:
        """Ask admission about an authorized request; an ApiError refuses it.

        `below` is the path below its subresource; with `is_forwarding` it is a path of another API server.
        """
        if not self._registry.has_admission:
            return
        for each in _connections(path, below, is_forwarding=is_forwarding):
            await self._admit(request, each)

    async def _admit(self, request: Request, connection: Connection) -> None:
        path = connection.path
        info = self._registry.kinds.lookup(path.group, path.version, path.plural)
        kind = _KINDS.get((path.plural, path.subresource)) or f"{info.resource.kind}ProxyOptions"
        version = f"{path.group}/{path.version}" if path.group else path.version
        wanted = {"kind": kind, "apiVersion": version, **_to_options(request, kind, connection.below)}
        options = WriteOptions(
            user_agent=request.header(b"user-agent"),
            warnings=request.warnings,
            user=request.user.to_info,
            audit_annotations=request.audit_annotations,
        )
        admitted = await self._registry.admit_connection(
            info, path.namespace, path.name, wanted, options, subresource=path.subresource
        )
        if admitted == wanted:
            return
        if path.subresource == _PROXY:
            text = f'{path.plural} "{path.name}" is forbidden: admission changed the path of the request'
            raise Forbidden(f"{text}, which is not supported here; let it deny the request instead")
        request.replace_query(_to_query(request, admitted))


def _connections(path: ResourcePath, below: str, *, is_forwarding: bool) -> Iterator[Connection]:
    if path.subresource == _PROXY or (path.plural, path.subresource) in _KINDS:
        yield Connection(path, below)
    if is_forwarding and (inner := _inner(below)) is not None:
        yield inner


def _inner(path: str) -> Connection | None:
    """Return what a path of another API server connects to, None for a path that opens no connection."""
    api, *rest = path.strip("/").split("/")
    if api != "api" or len(rest) < 4:
        return None
    version, *rest = rest
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 4:
        _, namespace, *rest = rest
    plural, name, subresource, *below = rest
    if (plural, subresource) not in _KINDS:
        return None
    target = ResourcePath("", version, namespace, plural, name, subresource)
    return Connection(target, "/" + "/".join(below))


def _to_options(request: Request, kind: str, below: str) -> Object:
    """Return the fields of the options that a query describes; BadRequest for a port that is no number."""
    if kind.endswith("ProxyOptions"):
        return {"path": below}
    pairs = _pairs(request)
    if kind == "PodPortForwardOptions":
        ports = [value for key, value in pairs if key == "ports"]
        if not all(port.isascii() and port.isdigit() for port in ports):
            raise BadRequest(f"ports: {ports} are not numbers of ports")
        return {"ports": [int(port) for port in ports]}
    options: Object = {flag: True for flag in _FLAGS if is_asked(request.query, flag)}
    if container := request.query.get("container"):
        options["container"] = container
    if kind == "PodExecOptions":
        options["command"] = [value for key, value in pairs if key == "command"]
    return options


def _to_query(request: Request, options: Object) -> bytes:
    """Return the query of the request with the options in place of its own."""
    pairs: list[tuple[str, Any]] = [(key, value) for key, value in _pairs(request) if key not in _KNOWN]
    for key in sorted(_KNOWN & options.keys()):
        value = options[key]
        if isinstance(value, bool):
            pairs += [(key, "true")] if value else []
        else:
            pairs += [(key, each) for each in (value if isinstance(value, list) else [value])]
    return urlencode(pairs).encode()


def _pairs(request: Request) -> list[tuple[str, str]]:
    return parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
