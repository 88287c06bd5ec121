"""Override a value of a YAML or JSON document that is the text of a field, for example a file of a ConfigMap. Pure.

YAML is changed as a graph of nodes, so every other value is written as it was: quotes, octal numbers, dates, anchors
and the order of keys stay, comments do not. Composing and writing YAML takes a microsecond for each byte, and libyaml
composes by recursion, so bytes, values and depth have limits.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml
from yaml.representer import SafeRepresenter

from federation.apimachinery.jsonpatch import Document, Keys, PatchError, parse_pointer
from federation.apimachinery.jsonsize import DEPTH_MAX
from federation.apimachinery.yamltext import TooDeepError, check_depth
from federation.planning.overrides.errors import OverrideError

DOCUMENT_BYTES_MAX: Final = 64 * 1024
"""Characters of one document. 64 KB of YAML take 0.2 s to change."""
DOCUMENTS_BYTES_MAX: Final = 512 * 1024
"""Characters of YAML that are read and written for one object, in all clusters together."""
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_REPRESENTER = SafeRepresenter()
_REMEDY = "correct the path, or add what is missing first"


class DocumentEditor:
    """Changes documents of one object for all clusters; every document is parsed once, and their size is bounded."""

    def __init__(self) -> None:
        self._left = DOCUMENTS_BYTES_MAX
        self._composed: dict[str, yaml.Node] = {}

    def patches(self, template: Mapping[str, Any], overriders: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield a patch of each changed text; OverrideError names the overrider and its field."""
        changed: dict[str, str] = {}
        for index, overrider in enumerate(overriders):
            try:
                path = overrider.get("fieldPath") or ""
                text = changed[path] if path in changed else _text_at(template, path)
                changed[path] = self._change(text, overrider)
            except OverrideError as error:
                raise error.within(f"fields[{index}]") from error
        for path, text in changed.items():
            value = base64.b64encode(text.encode()).decode() if _is_base64(template, path) else text
            yield {"op": "replace", "path": path, "value": value}

    def _change(self, text: str, overrider: Mapping[str, Any]) -> str:
        if len(text) > DOCUMENT_BYTES_MAX:
            raise OverrideError(
                f"the text has {len(text):,} characters, and the limit is {DOCUMENT_BYTES_MAX:,}; divide it",
                "fieldPath",
            )
        in_yaml, in_json = overrider.get("yaml"), overrider.get("json")
        if in_yaml and in_json:
            raise OverrideError("a document is YAML or JSON; remove one of yaml and json", "json")
        if in_yaml:
            return self._change_yaml(text, in_yaml)
        return _change_json(text, in_json) if in_json else text

    def _change_yaml(self, text: str, operations: Sequence[Mapping[str, Any]]) -> str:
        node = self._composed.get(text)
        if node is None:
            self._take(text)
            node = self._composed[text] = _compose(text)
        for index, operation in enumerate(operations):
            keys = parse_pointer(operation.get("subPath") or "")
            try:
                node = _edited(node, keys, operation.get("operator") or "replace", operation.get("value"))
            except PatchError as error:
                raise OverrideError(f"{error}; {_REMEDY}", f"yaml[{index}].subPath") from error
        result: str = yaml.serialize(node, Dumper=_DUMPER, allow_unicode=True, width=DOCUMENT_BYTES_MAX)
        self._take(result)
        return result

    def _take(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise OverrideError(
                f"more than {DOCUMENTS_BYTES_MAX:,} characters of YAML would be changed for all clusters of this"
                " object; move what differs into a text of its own, or write JSON",
                "yaml",
            )


def _is_base64(template: Mapping[str, Any], path: str) -> bool:
    return path.startswith("/data/") and template.get("kind") == "Secret" and template.get("apiVersion") == "v1"


def _text_at(template: Mapping[str, Any], path: str) -> str:
    value: Any = template
    for key in parse_pointer(path):
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isascii() and key.isdigit() and len(key) <= 10 and int(key) < len(value):
            value = value[int(key)]
        else:
            value = None
    if not isinstance(value, str):
        found = "no such field" if value is None else "no text"
        raise OverrideError(f"the object has {found} at {path}; correct the path", "fieldPath")
    if not _is_base64(template, path):
        return value
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise OverrideError(f"the value at {path} is no text in base64", "fieldPath") from error


def _change_json(text: str, operations: Sequence[Mapping[str, Any]]) -> str:
    try:
        # orjson would turn integers of more than 64 bits into floats.
        document = Document(json.loads(text, parse_constant=_refuse_constant), is_lenient=True)
    except (ValueError, RecursionError) as error:
        raise OverrideError(f"the text is no JSON: {error}", "fieldPath") from error
    for index, operation in enumerate(operations):
        try:
            keys = parse_pointer(operation.get("subPath") or "")
            document.apply(operation.get("operator") or "replace", keys, operation.get("value"))
            document.check_size()
        except PatchError as error:
            raise OverrideError(f"{error}; {_REMEDY}", f"json[{index}].subPath") from error
    if "\n" in text.strip():
        return json.dumps(document.value, ensure_ascii=False, indent=2)
    return json.dumps(document.value, ensure_ascii=False, separators=(",", ":"))


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _compose(text: str) -> yaml.Node:
    """Return the root node; OverrideError for what is no YAML, more than one document, or too deep."""
    try:
        check_depth(text)
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    except TooDeepError as error:
        raise OverrideError(f"the document has more than {DEPTH_MAX} levels", "fieldPath") from error
    except yaml.YAMLError as error:
        # The parser's message may quote the text, which may be a Secret's, and this one goes into Events.
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", see line {mark.line + 1}, column {mark.column + 1}"
        raise OverrideError(f"the text is not one document of YAML{place}", "fieldPath") from error
    if node is None:
        raise OverrideError("the text is empty", "fieldPath")
    return node


def _edited(node: yaml.Node, keys: Keys, operator: str, value: Any) -> yaml.Node:
    """Return the node with the change; only nodes on the path are copied, because aliases share the others."""
    if not keys:
        if operator == "remove":
            raise PatchError("the whole document cannot be removed")
        return _to_node(value)
    path, copies = node, []
    for key in keys[:-1]:
        place = _place(path, key)
        copies.append((path, place))
        path = path.value[place][1] if isinstance(path, yaml.MappingNode) else path.value[place]
    changed = _copied(path)
    _put(changed, keys[-1], operator, value)
    for parent, place in reversed(copies):
        above = _copied(parent)
        above.value[place] = (above.value[place][0], changed) if isinstance(above, yaml.MappingNode) else changed
        changed = above
    return changed


def _copied(node: yaml.Node) -> yaml.Node:
    """Return a copy with scalars of its own: those that two places share would be written with an anchor."""
    if isinstance(node, yaml.MappingNode):
        items: list[Any] = [(_own_scalar(key), _own_scalar(item)) for key, item in node.value]
    elif isinstance(node, yaml.SequenceNode):
        items = [_own_scalar(item) for item in node.value]
    else:
        raise PatchError("the path leads into a value that is no mapping and no list")
    return type(node)(node.tag, items, flow_style=node.flow_style)


def _own_scalar(node: yaml.Node) -> yaml.Node:
    return yaml.ScalarNode(node.tag, node.value, style=node.style) if isinstance(node, yaml.ScalarNode) else node


def _put(node: yaml.Node, key: str, operator: str, value: Any) -> None:
    """Change one item of a mapping or list in place."""
    if operator == "remove":
        del node.value[_place(node, key)]
        return
    if isinstance(node, yaml.MappingNode):
        place = _find(node, key)
        if place is None:
            node.value.append((_to_node(key, is_key=True), _to_node(value)))
        else:
            node.value[place] = (node.value[place][0], _to_node(value))
    elif operator == "add" and isinstance(node, yaml.SequenceNode) and key in ("-", str(len(node.value))):
        node.value.append(_to_node(value))
    elif operator == "add":
        node.value.insert(_place(node, key), _to_node(value))
    else:
        node.value[_place(node, key)] = _to_node(value)


def _find(node: yaml.MappingNode, key: str) -> int | None:
    """Return the place of a key. A repeated key counts where readers look for it: at its last place."""
    places = (
        place
        for place in range(len(node.value) - 1, -1, -1)
        if isinstance(node.value[place][0], yaml.ScalarNode) and node.value[place][0].value == key
    )
    return next(places, None)


def _place(node: yaml.Node, key: str) -> int:
    """Return the place of an item that exists; PatchError without it."""
    if isinstance(node, yaml.MappingNode):
        place = _find(node, key)
        if place is None:
            raise PatchError(f"the document is missing the key {key}")
        return place
    if isinstance(node, yaml.SequenceNode):
        digits = key.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
            raise PatchError(f"{key!r} is no list index")
        index = int(key) + (len(node.value) if key.startswith("-") else 0)
        if not 0 <= index < len(node.value):
            raise PatchError(f"index {key} is out of range")
        return index
    raise PatchError(f"{key} is not in a mapping or list")


def _to_node(value: Any, *, is_key: bool = False) -> yaml.Node:
    """Return the node of a JSON value. Texts are quoted: readers disagree about words such as `no` and `0o7`."""
    if isinstance(value, dict):
        pairs = [(_to_node(key, is_key=True), _to_node(item)) for key, item in value.items()]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=not value)
    if isinstance(value, list):
        return yaml.SequenceNode("tag:yaml.org,2002:seq", [_to_node(item) for item in value], flow_style=not value)
    if isinstance(value, str):
        style = None if is_key else "|" if "\n" in value else '"'
        return yaml.ScalarNode("tag:yaml.org,2002:str", value, style=style)
    node: yaml.Node = _REPRESENTER.represent_data(value)
    return node
