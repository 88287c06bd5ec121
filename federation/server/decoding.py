"""Request bodies: bytes to objects, with Kubernetes' words for what is wrong, and safe against hostile input. Pure.

JSON goes through orjson. A key that occurs twice is found by counting, so that the usual body is parsed only once. YAML
is looked through event by event first: libyaml builds nested nodes by recursion in C, and aliases can stand for
exponentially many nodes, so depth and size are bounded before anything is built. Protobuf is in `protobuf/`.
"""

import json
import math
from collections.abc import Iterator
from typing import Any

import orjson
import yaml

from federation.base.errors import BadRequest, UnsupportedMediaType
from federation.server.protobuf import decoder as protobuf

DEPTH_MAX = 128
"""Nesting of a body. Kubernetes' deepest kinds stay below 40."""
NODES_MAX = 200_000
"""Values in a YAML body, also after its aliases are written out. JSON, which is parsed a hundred times faster, may hold
as many as fit into a body."""
SLOW_BYTES_MIN = 64 * 1024
"""YAML bodies from this size take long enough to be decoded in a thread."""
BODY_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_JSON_TYPES = frozenset({"", "application/json", "text/json", "*/*"})
_YAML_TYPES = frozenset({"application/yaml", "text/yaml", "application/x-yaml"})


def decode_object(body: bytes, content_type: str) -> tuple[dict[str, Any], list[str]]:
    """Return the object in a request body and the names of duplicate fields.

    BadRequest when it cannot be parsed or is not an object; UnsupportedMediaType for other content types.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in _JSON_TYPES:
        value = decode_json(body)
        duplicates = [] if not isinstance(value, dict) else find_duplicates(body, value)
    elif media_type in _YAML_TYPES:
        value, duplicates = decode_yaml(body)
    elif media_type == protobuf.MEDIA_TYPE:
        value, duplicates = protobuf.decode(body), []
    else:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: " + BODY_TYPES
        )
    if not isinstance(value, dict):
        raise BadRequest(
            "the object provided is unrecognized (must be a JSON object): couldn't get version/kind; "
            f"json parse error: cannot unmarshal {_kind_of(value)} into Go value of type struct"
        )
    return value, duplicates


def decode_json(body: bytes) -> Any:
    """Return the JSON value; BadRequest when it is not JSON or nested too deeply."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            "the object provided is unrecognized (must be of type Object): couldn't get version/kind; "
            f"json parse error: {error}"
        ) from error
    # Brackets bound the depth from above, so most bodies need no walk.
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        _check_depth(value)
    return value


def find_duplicates(body: bytes, value: dict[str, Any]) -> list[str]:
    r"""Return the paths of fields that occur twice in the JSON `body` which was parsed to `value`.

    Every key ends in `":` when there is no space before the colon, and inside a string that text reads `\":`. When the
    two counts agree there is no duplicate; otherwise (duplicates, or unusual white space) Python's parser decides.
    """
    is_compact = not any(gap in body for gap in (b'" :', b'"\t:', b'"\n:', b'"\r:'))
    if is_compact and body.count(b'":') - body.count(b'\\":') == _count_keys(value):
        return []
    try:
        pairs = json.loads(body, object_pairs_hook=_Pairs)
        return list(dict.fromkeys(_duplicates(pairs, "")))
    except (ValueError, RecursionError):
        return []


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its keys as often as they were written."""


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, child in value:
            at = f"{path}.{key}" if path else key
            if key in seen:
                yield at
            seen.add(key)
            yield from _duplicates(child, at)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _duplicates(child, f"{path}[{index}]")


def decode_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Return the value of a one-document YAML body as JSON would hold it, and its duplicate keys; BadRequest."""
    try:
        duplicates, has_aliases = _inspect_yaml(body)
        value = yaml.load(body, Loader=_Loader)  # noqa: S506  # a safe loader with fewer types
        if has_aliases and _count_nodes(value, {}) > NODES_MAX:
            raise ValueError("document contains excessive aliasing")
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError, TypeError) as error:
        detail = str(error).replace("\n", " ")
        raise BadRequest(f"error converting YAML to JSON: yaml: {detail}") from error
    if has_aliases:
        _check_depth(value)
    return _to_json(value), duplicates


def is_slow(body: bytes, content_type: str) -> bool:
    """Return whether decoding takes so long that it should not be done in the event loop."""
    return len(body) >= SLOW_BYTES_MIN and "yaml" in content_type.lower()


def is_json(body: bytes) -> bool:
    """Tell whether a body that may be JSON or YAML is JSON."""
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True


def check_patch_depth(body: bytes) -> None:
    """Refuse a JSON patch body that is nested too deeply; what is not JSON is left to who reads it; BadRequest."""
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        try:
            _check_depth(orjson.loads(body))
        except orjson.JSONDecodeError:
            return


_CORE = "tag:yaml.org,2002:"
_TAGS = frozenset(_CORE + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))


class _Loader(yaml.CSafeLoader):
    """Only what JSON has: dates stay text, and `<<` is a key like any other (merging can grow exponentially)."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _TAGS]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _inspect_yaml(body: bytes) -> tuple[list[str], bool]:
    """Walk the events without recursion: bound the depth, find duplicate scalar keys, tell whether aliases are used."""
    duplicates: list[str] = []
    # One entry per open collection: None for a sequence, else the keys seen and whether a key comes next.
    open_: list[list[Any] | None] = []
    has_aliases = False
    for nodes, event in enumerate(yaml.parse(body, Loader=yaml.CSafeLoader)):
        if nodes > NODES_MAX:
            raise ValueError(f"more than {NODES_MAX} values: send JSON")
        if isinstance(event, yaml.AliasEvent):
            has_aliases = True
        if isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
        if isinstance(event, yaml.ScalarEvent) and open_ and open_[-1] is not None and open_[-1][1]:
            if event.value in open_[-1][0]:
                duplicates.append(event.value)
            open_[-1][0].add(event.value)
        if isinstance(event, (yaml.NodeEvent)) and open_ and open_[-1] is not None:
            open_[-1][1] = not open_[-1][1]
        if isinstance(event, yaml.MappingStartEvent):
            open_.append([set(), True])
        elif isinstance(event, yaml.SequenceStartEvent):
            open_.append(None)
        if (tag := getattr(event, "tag", None)) is not None and tag != "!" and tag not in _TAGS:
            raise ValueError(f"unknown tag {tag}")
        if len(open_) > DEPTH_MAX:
            raise ValueError(f"exceeded max depth of {DEPTH_MAX}")
    return duplicates, has_aliases


def _to_json(value: Any) -> Any:
    """Return a YAML value with text keys and JSON types only."""
    if isinstance(value, dict):
        return {_to_key(key): _to_json(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_to_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise BadRequest(f"error converting YAML to JSON: yaml: {value} is not a JSON number")
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise BadRequest("error converting YAML to JSON: yaml: an integer needs more than 64 bits")
    return value


def _to_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, (int, float)):
        return str(key)
    raise BadRequest("error converting YAML to JSON: yaml: a key is neither text nor a number")


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return iter(value.values())
    return iter(value) if isinstance(value, list) else iter(())


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise BadRequest(f"the object provided is nested too deeply: exceeded max depth of {DEPTH_MAX}")
        level = [child for entry in level for child in _children(entry) if isinstance(child, (dict, list))]


def _count_nodes(value: Any, counted: dict[int, int]) -> int:
    """Return how many values there are when every alias is written out; one that contains itself has too many.

    Each collection is counted once, however many aliases name it. RecursionError for a long chain of aliases.
    """
    if not isinstance(value, (dict, list)):
        return 1
    known = counted.get(id(value))
    if known is None:
        counted[id(value)] = NODES_MAX + 1  # what a collection inside itself finds
        known = counted[id(value)] = 1 + sum(_count_nodes(child, counted) for child in _children(value))
    return known


def _count_keys(value: Any) -> int:
    pending, keys = [value], 0
    while pending:
        entry = pending.pop()
        if type(entry) is dict:
            keys += len(entry)
            pending.extend(entry.values())
        elif type(entry) is list:
            pending.extend(entry)
    return keys


def _kind_of(value: Any) -> str:
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "null" if value is None else "number"
