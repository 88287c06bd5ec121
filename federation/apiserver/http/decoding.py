"""Request bodies: bytes to objects, with Kubernetes' error messages, and safe against hostile input. Pure.

JSON is parsed by orjson; duplicate keys are detected by counting, so that an ordinary body is parsed only once. YAML is
first scanned as events: libyaml builds nested nodes by recursion in C, and aliases can expand to exponentially many
nodes, so depth and size are checked before anything is built. `protobuf/` decodes protobuf.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import orjson
import yaml

from federation.apimachinery.errors import BadRequest, UnsupportedMediaType
from federation.apimachinery.jsonsize import DEPTH_MAX, VALUES_MAX, has_more_values
from federation.apiserver.http.protobuf import decoder as protobuf
from federation.apiserver.semantics.schema import strictness
from federation.apiserver.semantics.schema.model import ANYTHING, Schema
from federation.apiserver.semantics.schema.strictness import Pairs, find_problems
from federation.apiserver.verbs import patching
from federation.apiserver.verbs.sizelimits import check_size, too_large

NODES_MAX = 200_000
"""Values in a YAML body, with its aliases expanded. JSON is parsed a hundred times faster and needs no such limit."""
SLOW_BYTES_MIN = 4 * 1024
"""YAML and protobuf bodies of this size and more are decoded in a thread: 4 KB of YAML can take 15 ms."""
SIZE_CHECK_BYTES_MIN = 64 * 1024
"""Smaller JSON bodies are not walked to check their size."""
DUPLICATES_MAX = 100
"""Duplicate keys of YAML that are reported."""
BODY_TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_JSON_TYPES = frozenset({"", "application/json", "text/json", "*/*"})
_YAML_TYPES = frozenset({"application/yaml", "text/yaml", "application/x-yaml"})
_NAME_CHARS_MAX = 1000


def decode_object(
    body: bytes, content_type: str, *, values_max: int = VALUES_MAX, schema: Schema = ANYTHING
) -> tuple[dict[str, Any], list[str]]:
    """Return the object in a request body, and the strict decoder's problems if it has duplicate fields.

    With the schema of a built-in kind these are all unknown and duplicate fields of JSON, in document order. The
    duplicates of YAML are one problem.
    BadRequest when it cannot be parsed or is not an object; RequestEntityTooLarge when it has more than `values_max`
    values besides managed fields; UnsupportedMediaType for other content types.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in _JSON_TYPES:
        # The server's managed fields can double the values of a user's object.
        check_values(body, 2 * values_max)
        value = decode_json(body)
        problems = find_duplicates(body, value, schema) if isinstance(value, dict) else []
    elif media_type in _YAML_TYPES:
        value, duplicates = decode_yaml(body)
        problems = yaml_problems(duplicates)
    elif media_type == protobuf.MEDIA_TYPE:
        value, problems = protobuf.decode(body), []
        _check_depth(value)
    else:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: " + BODY_TYPES
        )
    if value is None:
        value = {}  # as Go decodes null into a struct; what the object lacks is reported later
    if not isinstance(value, dict):
        raise BadRequest(
            "the object provided is unrecognized (must be a JSON object): couldn't get version/kind; "
            f"json parse error: cannot unmarshal {_kind_of(value)} into Go value of type struct"
        )
    if media_type not in _JSON_TYPES or _needs_size_check(body, values_max):
        check_size(value, values_max)
    return value, problems


def _needs_size_check(body: bytes, values_max: int) -> bool:
    """Return whether a JSON body can hold too many values, or long keys above so many that their paths take seconds."""
    return len(body) > min(SIZE_CHECK_BYTES_MIN, 2 * values_max)


def check_values(body: bytes, values_max: int) -> None:
    """Raise RequestEntityTooLarge when a JSON body holds more values; nothing is parsed."""
    if has_more_values(body, values_max):
        raise too_large(f"more than {values_max} values (keys and list items)")


def decode_json(body: bytes) -> Any:
    """Return the JSON value; BadRequest when it is not JSON or nested too deeply."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(
            "the object provided is unrecognized (must be of type Object): couldn't get version/kind; "
            f"json parse error: {error}"
        ) from error
    # The number of brackets is an upper bound of the depth, so most bodies need no traversal.
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        _check_depth(value)
    return value


def find_duplicates(body: bytes, value: Any, schema: Schema = ANYTHING) -> list[str]:
    r"""Return the problems of the JSON `body`, whose parsed value is `value`, if fields occur twice in it.

    A body without white space that equals the encoded value has none. Without white space before colons every key ends
    in `":`, which reads `\":` inside strings. If the number of such endings equals the number of parsed keys, there are
    no duplicates; otherwise Python's slower parser decides.
    """
    if orjson.dumps(value) == body:
        return []
    has_gaps = b'" :' in body or b'"\t:' in body or b'"\n:' in body or b'"\r:' in body
    if not has_gaps and body.count(b'":') - body.count(b'\\":') == _count_keys(value):
        return []
    try:
        problems = find_problems(schema, json.loads(body, object_pairs_hook=Pairs))
    except (ValueError, RecursionError):
        return []
    # A colon in a text may have looked like a key.
    return problems if any(problem.startswith("duplicate") for problem in problems) else []


def yaml_problems(duplicates: list[str]) -> list[str]:
    """Return the duplicate keys of a YAML document as the YAML decoder's only error."""
    return ["yaml: unmarshal errors:" + "".join(f"\n  {text}" for text in duplicates)] if duplicates else []


def find_patch_problems(body: bytes, value: Any, media_type: str) -> list[str]:
    """Return the strict decoder's problems of a patch's JSON body, whose parsed value is `value`.

    They are duplicate fields, and unknown ones of a JSON patch. The YAML decoder reads an apply.
    """
    if media_type == patching.APPLY:
        if not find_duplicates(body, value):
            return []
        try:
            return yaml_problems(_inspect_yaml(body)[0])
        except (yaml.YAMLError, UnicodeDecodeError, ValueError):
            return []
    if media_type != patching.JSON:
        return find_duplicates(body, value)
    steps = value if isinstance(value, list) else ()
    if all(
        step.keys() <= strictness.JSON_PATCH_FIELDS for step in steps if isinstance(step, dict)
    ) and not find_duplicates(body, value):
        return []
    pairs = json.loads(body, object_pairs_hook=Pairs)
    return [f"json patch {problem}" for problem in find_problems(strictness.JSON_PATCH, pairs)]


def decode_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Return the JSON value of a YAML document with sorted keys, and a text like `line 5: key "a" already set in map`
    for each duplicate key; BadRequest when it cannot be converted.
    """
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
    """Return whether decoding takes too long for the event loop."""
    if len(body) < SLOW_BYTES_MIN:
        return False
    media_type = content_type.lower()
    return "yaml" in media_type or "protobuf" in media_type


def check_patch_size(body: bytes, value: Any, values_max: int) -> None:
    """Raise when a JSON patch is nested too deeply (BadRequest) or holds too much (RequestEntityTooLarge)."""
    is_large = _needs_size_check(body, values_max)
    # The number of brackets is an upper bound of the depth. Shorter bodies cannot hold so many.
    if is_large or (len(body) > DEPTH_MAX and body.count(b"{") + body.count(b"[") > DEPTH_MAX):
        _check_depth(value)
        if is_large:
            check_size(value if isinstance(value, dict) else {"patch": value}, values_max)


_CORE = "tag:yaml.org,2002:"
_MERGE = _CORE + "merge"
_TAGS = frozenset(_CORE + name for name in ("str", "int", "float", "bool", "null", "map", "seq"))


class _Loader(yaml.CSafeLoader):
    """Loads JSON types only: dates stay text. Merges (`<<`) are counted, because they can grow exponentially."""

    merged = 0
    """Pairs that merges have copied."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        before = len(node.value)
        super().flatten_mapping(node)
        self.merged += max(0, len(node.value) - before)
        if self.merged > NODES_MAX:
            raise ValueError("document contains excessive merging")


# Without base 60 (1:30), which Kubernetes' YAML does not have either. Its conversion takes quadratic time.
_NUMBERS = {
    _CORE + "int": re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$"),
    _CORE + "float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in resolvers if tag in _TAGS or tag == _MERGE]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
# As in Go, and in YAML 1.1, one letter is a truth value, too.
_Loader.add_implicit_resolver(_CORE + "bool", re.compile(r"[yYnN]$"), list("yYnN"))
_Loader.bool_values = {**yaml.CSafeLoader.bool_values, "y": True, "n": False}


def _construct_number(loader: _Loader, node: yaml.ScalarNode) -> float:
    if ":" in node.value:  # an explicit tag: `!!int 1:30`
        raise ValueError("numbers of base 60 are not supported")
    is_int = node.tag == _CORE + "int"
    number: float = loader.construct_yaml_int(node) if is_int else loader.construct_yaml_float(node)
    return number


for _tag in _NUMBERS:
    _Loader.add_constructor(_tag, _construct_number)


@dataclass(slots=True)
class _Mapping:
    """An open mapping of a YAML document."""

    keys: set[str]
    line: int
    expects_key: bool = True
    key: str = ""
    is_duplicate: bool = False
    """Whether `key` occurred before."""


def _inspect_yaml(body: bytes) -> tuple[list[str], bool]:
    """Check depth and size of a YAML body without recursion; return duplicate keys and whether aliases occur.

    As in Go's decoder, a duplicate key is reported after its value, with the line on which the value begins.
    """
    duplicates: list[str] = []
    open_: list[_Mapping | int] = []  # a sequence is the line on which it begins
    has_aliases = False

    def end_value(line: int) -> None:
        """Handle the end of a value that began on `line`."""
        mapping = open_[-1] if open_ else None
        if isinstance(mapping, _Mapping):
            if not mapping.expects_key and mapping.is_duplicate and len(duplicates) < DUPLICATES_MAX:
                key = json.dumps(mapping.key[:_NAME_CHARS_MAX], ensure_ascii=False)
                duplicates.append(f"line {line + 1}: key {key} already set in map")
            mapping.expects_key = not mapping.expects_key

    for nodes, event in enumerate(yaml.parse(body, Loader=yaml.CSafeLoader)):
        if nodes > NODES_MAX:
            raise ValueError(f"more than {NODES_MAX} values: send JSON")
        line = event.start_mark.line if event.start_mark is not None else 0
        if isinstance(event, yaml.CollectionEndEvent):
            closed = open_.pop()
            end_value(closed.line if isinstance(closed, _Mapping) else closed)
        elif isinstance(event, yaml.MappingStartEvent):
            open_.append(_Mapping(set(), line))
        elif isinstance(event, yaml.SequenceStartEvent):
            open_.append(line)
        elif isinstance(event, yaml.NodeEvent):
            has_aliases = has_aliases or isinstance(event, yaml.AliasEvent)
            mapping = open_[-1] if open_ else None
            if isinstance(mapping, _Mapping) and mapping.expects_key and isinstance(event, yaml.ScalarEvent):
                mapping.key = event.value
                mapping.is_duplicate = event.value in mapping.keys
                mapping.keys.add(event.value)
            end_value(line)
        if (tag := getattr(event, "tag", None)) is not None and tag != "!" and tag not in _TAGS:
            raise ValueError(f"unknown tag {tag}")
        if len(open_) > DEPTH_MAX:
            raise ValueError(f"exceeded max depth of {DEPTH_MAX}")
    return duplicates, has_aliases


def _to_json(value: Any) -> Any:
    """Return a YAML value with JSON types only and sorted string keys: Go converts YAML to sorted JSON first."""
    if isinstance(value, dict):
        pairs = [(_to_key(key), entry) for key, entry in value.items()]
        return {key: _to_json(entry) for key, entry in sorted(pairs, key=itemgetter(0))}
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
    """Return the number of values with all aliases expanded; a collection that contains itself exceeds the limit.

    Each collection is counted once, however many aliases refer to it. RecursionError for a long chain of aliases.
    """
    if not isinstance(value, (dict, list)):
        return 1
    known = counted.get(id(value))
    if known is None:
        counted[id(value)] = NODES_MAX + 1  # found when the collection contains itself
        known = counted[id(value)] = 1 + sum(_count_nodes(child, counted) for child in _children(value))
    return known


def _count_keys(value: Any) -> int:
    pending: list[Any] = [[value]]
    keys = 0
    while pending:
        container = pending.pop()
        if container.__class__ is dict:
            keys += len(container)
            container = container.values()
        pending += [child for child in container if child.__class__ is dict or child.__class__ is list]
    return keys


def _kind_of(value: Any) -> str:
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "null" if value is None else "number"
