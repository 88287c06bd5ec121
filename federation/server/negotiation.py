"""Content negotiation: which representation an Accept header asks for, among those that this server can make. Pure.

JSON, YAML, and the `as=` transformations of meta.k8s.io (Table, PartialObjectMetadata) and apidiscovery.k8s.io. A
client lists what it can read in order of preference and we take the first that we can make, as kube-apiserver does.
"""

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from federation.base.errors import NotAcceptable

JSON = b"application/json"
YAML = b"application/yaml"


class Shape(Enum):
    """What is made of the object before it is serialised."""

    OBJECT = "Object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    DISCOVERY = "APIGroupDiscoveryList"


class Answer(NamedTuple):
    """A negotiated representation; `version` is that of the transformation (v1, v1beta1, v2, v2beta1)."""

    shape: Shape
    is_yaml: bool = False
    version: str = ""
    content_type: bytes = JSON


PLAIN = Answer(Shape.OBJECT)
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


@lru_cache(maxsize=512)
def negotiate(accept: bytes, *, is_discovery: bool = False) -> Answer:
    """Return the first acceptable representation; NotAcceptable when there is none (e.g. only protobuf)."""
    text = accept.decode("latin-1").strip()
    if not text:
        return PLAIN
    for clause in _by_quality(text):
        answer = _match(clause, is_discovery)
        if answer is not None:
            return answer
    raise NotAcceptable("only the following media types are accepted: application/json, application/yaml")


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


def _match(parts: list[str], is_discovery: bool) -> Answer | None:
    is_yaml = _TYPES.get(parts[0].lower())
    if is_yaml is None:
        return None
    parameters = dict(part.split("=", 1) for part in parts[1:] if "=" in part)
    target = parameters.get("as")
    base = YAML if is_yaml else JSON
    if target is None:
        return Answer(Shape.OBJECT, is_yaml, "", base) if is_yaml else PLAIN
    group, version = parameters.get("g"), parameters.get("v", "")
    if is_discovery:
        if target == "APIGroupDiscoveryList" and group == "apidiscovery.k8s.io" and version in _DISCOVERY_VERSIONS:
            label = f"{base.decode()};g={group};v={version};as={target}".encode()
            return Answer(Shape.DISCOVERY, is_yaml, version, label)
        return None
    if target in _META and group == "meta.k8s.io" and version in _META_VERSIONS:
        return Answer(_META[target], is_yaml, version, base)
    return None
