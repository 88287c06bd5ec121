"""Content negotiation: the representation of a response, chosen by the request's Accept header. Pure.

It knows JSON, YAML, and the `as=` transformations of meta.k8s.io (Table, PartialObjectMetadata) and of
apidiscovery.k8s.io. The first acceptable clause in the client's order of preference wins, as in kube-apiserver.
"""

from enum import Enum
from typing import NamedTuple

from federation.apimachinery.errors import NotAcceptable
from federation.apimachinery.textcache import cache_short

JSON = b"application/json"
YAML = b"application/yaml"


class Shape(Enum):
    """The transformation of an object before it is serialised."""

    OBJECT = "Object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    DISCOVERY = "APIGroupDiscoveryList"


class Representation(NamedTuple):
    """A negotiated form; `version` is that of the transformation (v1, v1beta1, v2, v2beta1)."""

    shape: Shape
    is_yaml: bool = False
    version: str = ""
    content_type: bytes = JSON
    is_list: bool = False
    """True if metadata is wanted as a PartialObjectMetadataList."""


PLAIN = Representation(Shape.OBJECT)
_TYPES = {
    "application/json": False,
    "*/*": False,
    "application/*": False,
    "text/json": False,
    "application/yaml": True,
    "text/yaml": True,
}
_META = {
    "Table": Shape.TABLE,
    "PartialObjectMetadata": Shape.METADATA,
    "PartialObjectMetadataList": Shape.METADATA,
}
_META_VERSIONS = frozenset({"v1", "v1beta1"})
_DISCOVERY_VERSIONS = frozenset({"v2", "v2beta1"})


def negotiate(accept: bytes, *, is_discovery: bool = False) -> Representation:
    """Return the first acceptable representation; NotAcceptable when there is none (e.g. only protobuf)."""
    return _for_discovery(accept) if is_discovery else _for_objects(accept)


@cache_short(512, chars_max=512)
def _for_discovery(accept: bytes) -> Representation:
    return _negotiate(accept, is_discovery=True)


@cache_short(512, chars_max=512)
def _for_objects(accept: bytes) -> Representation:
    return _negotiate(accept, is_discovery=False)


def _negotiate(accept: bytes, *, is_discovery: bool) -> Representation:
    text = accept.decode("latin-1").strip()
    if not text:
        return PLAIN
    for clause in _by_quality(text):
        representation = _match(clause, is_discovery)
        if representation is not None:
            return representation
    raise _not_acceptable()


def negotiate_object(accept: bytes) -> Representation:
    """Return JSON or YAML, for what has neither a table nor metadata; NotAcceptable for any other shape."""
    representation = negotiate(accept)
    if representation.shape is not Shape.OBJECT:
        raise _not_acceptable()
    return representation


def _by_quality(text: str) -> list[list[str]]:
    """Return the clauses split at `;`, in order of quality; equal ones keep the client's order."""
    clauses: list[tuple[float, list[str]]] = []
    for clause in text.split(","):
        parts = [part.strip() for part in clause.split(";")]
        quality = 1.0
        for part in parts[1:]:
            if part.startswith("q="):
                try:
                    quality = float(part[2:])
                except ValueError:
                    quality = 0.0
        if quality > 0:
            clauses.append((quality, parts))
    clauses.sort(key=lambda entry: -entry[0])
    return [parts for _, parts in clauses]


def _match(parts: list[str], is_discovery: bool) -> Representation | None:
    is_yaml = _TYPES.get(parts[0].lower())
    if is_yaml is None:
        return None
    parameters = dict(part.split("=", 1) for part in parts[1:] if "=" in part)
    target = parameters.get("as")
    base = YAML if is_yaml else JSON
    if target is None:
        return Representation(Shape.OBJECT, is_yaml, "", base) if is_yaml else PLAIN
    group, version = parameters.get("g"), parameters.get("v", "")
    if is_discovery:
        if target == "APIGroupDiscoveryList" and group == "apidiscovery.k8s.io" and version in _DISCOVERY_VERSIONS:
            label = f"{base.decode()};g={group};v={version};as={target}".encode()
            return Representation(Shape.DISCOVERY, is_yaml, version, label)
        return None
    if target in _META and group == "meta.k8s.io" and version in _META_VERSIONS:
        return Representation(_META[target], is_yaml, version, base, is_list=target == "PartialObjectMetadataList")
    return None


def _not_acceptable() -> NotAcceptable:
    return NotAcceptable("only the following media types are accepted: application/json, application/yaml")
