"""A request of the comparison, and the kinds that requests are made for.

A request is known by its `origin`: area, object and change. Both servers get the requests of the same origins; only
what names an object's uid or revision differs between them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson
from tests.support.rest import Object

from federation.apiserver.semantics.kinds.builtin import builtin_kinds

NAMESPACE: Final = "corpus"
JSON: Final = "application/json"
MANAGER: Final = "corpus"


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent."""

    origin: str
    method: str
    url: str
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def area(self) -> str:
        """The part of the comparison that made the request."""
        return self.origin.partition(":")[0]


class Target(NamedTuple):
    """A kind's collection."""

    plural: str
    namespaced: bool
    root: str
    """The path of the collection in the namespace of the comparison."""


def request(
    origin: str, method: str, url: str, body: Any = None, *, type_: str = JSON, headers: Any = None, **query: Any
) -> Request:
    """Return a request with a JSON body, unless `body` is bytes or None."""
    content = body if isinstance(body, bytes | None) else orjson.dumps(body)
    given = {"accept": JSON, **({} if content is None or not type_ else {"content-type": type_}), **(headers or {})}
    if query:
        url = f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"
    return Request(origin, method, url, content, given)


def targets() -> dict[tuple[str, str], Target]:
    """Return every built-in kind by apiVersion and kind."""
    found = {}
    for info in builtin_kinds():
        kind = info.resource
        found[kind.api_version, kind.kind] = target(kind.api_version, kind.plural, namespaced=kind.namespaced)
    return found


def target(api_version: str, plural: str, *, namespaced: bool) -> Target:
    """Return the target of one kind."""
    prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    scope = f"/namespaces/{NAMESPACE}" if namespaced else ""
    return Target(plural, namespaced, f"{prefix}{scope}/{plural}")


def within(obj: Object, kind: Target) -> Object:
    """Return the object in the namespace of the comparison, without a revision."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return obj
    metadata = {name: value for name, value in metadata.items() if name != "resourceVersion"}
    if kind.namespaced:
        metadata["namespace"] = NAMESPACE
    return {**obj, "metadata": metadata}


def key(obj: Object) -> str:
    """Return an object's kind and name, for origins."""
    version = obj["apiVersion"].rpartition("/")[2]
    plain = {"HorizontalPodAutoscaler": f"HorizontalPodAutoscaler.{version}"}.get(obj["kind"], obj["kind"])
    return f"{plain} {(obj.get('metadata') or {}).get('name', '')}"
