"""Values of Secrets inside any object: which objects carry some, and the same objects without them. Pure.

This is the one rule of what counts as a Secret. Encryption at rest, authorization, the audit log, plans, differences,
records of decisions and support bundles use it, so that a new kind needs no line anywhere. An object carries values of
Secrets if at any depth, also inside texts that are JSON (such as the annotation `last-applied-configuration`),

- a manifest of kind Secret has data,
- a text in another format than JSON, such as YAML, has a line `kind: Secret` and one with data, or
- an override changes `/data` or `/stringData`. Its target may be a Secret whatever the selectors of its policy say,
  because a label of a Secret may name the policy.

Such a text counts as a whole: it is not parsed, because every stored value passes here. Values that are compressed or
encoded in yet another way are not recognized.

The kinds in `secretkinds.py` hold Secrets by their nature; their content need not be looked at.

Decisions: docs/decisions/0250-what-carries-a-secret-is-a-secret.md,
docs/decisions/0257-a-manifest-in-a-text-counts-as-a-whole.md
"""

import base64
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import orjson

from federation.apimachinery.resources import Object
from federation.apimachinery.wellknown import LAST_APPLIED_CONFIGURATION

MASK = "***"
_SECRET_FIELDS = frozenset({"data", "stringdata", "binarydata"})
"""In small letters: a misspelled `stringdata` holds a value, too."""
_RULES = "overrideRules"
_POINTERS = ("path", "fieldPath", "imagePath")
_CHANGES = frozenset({"value", "json", "yaml", "operations"})
"""Fields of an override with what it writes."""
_HINT = re.compile(
    rb'Secret\\*"|\\*"/(?:data|stringData|binaryData)[/"\\]|kind[\\"\']* *:[ \\"\']*Secret\b', re.IGNORECASE
)
"""All objects that carry values have this in their bytes, and few others: those need not be parsed."""
_MANIFEST_TEXT = re.compile(r"""(?:^|[\s{,"'])kind["']? *: *["']?Secret["']? *(?:$|[\s,}#])""", re.MULTILINE)
_DATA_TEXT = re.compile(r"""(?:^|[\s{,"'])(?:data|stringData|binaryData)["']? *:""", re.MULTILINE | re.IGNORECASE)
_WORD = re.compile(r"[^\s\"'{},:]+")
_ABSENT = object()
_Leaf = Callable[[Any, Any], Any]
"""Returns what replaces a value of a Secret, from it and from the value at the same place of another object."""


def carries_secret_values(value: bytes) -> bool:
    """Return whether an object in JSON carries values of Secrets. Bytes that are not JSON do not."""
    if _HINT.search(value) is None:
        return False
    try:
        return next(_found(orjson.loads(value)), None) is not None
    except orjson.JSONDecodeError:
        return False


def secret_values(obj: object) -> Iterator[bytes]:
    """Yield the values of Secrets that an object carries: as they are, and decoded from base64."""
    for value in _found(obj):
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        data = _DATA_TEXT.search(text) if _is_manifest(text) else None
        for each in [text] if data is None else [text, *_WORD.findall(text, data.end())]:
            yield each.encode(errors="replace")
            try:
                yield base64.b64decode(each, validate=True)
            except ValueError:
                continue


def without_secret_values(value: Any) -> Any:
    """Return an object, or any other JSON value, with `***` in place of each value of a Secret. Keys and paths stay."""
    return _walk(value, _ABSENT, lambda _value, _other: MASK)


def compared_without_secret_values(obj: Mapping[str, Any], other: Mapping[str, Any], side: str) -> Object:
    """Return the object without values of Secrets; those that differ from the ones of `other` name the side."""

    def mask(value: Any, others: Any) -> str:
        return MASK if others is _ABSENT or others == value else f"{MASK} ({side})"

    replaced: Object = _walk(obj, other, mask)
    return replaced


def both_without_secret_values(
    first: Mapping[str, Any], second: Mapping[str, Any], sides: tuple[str, str]
) -> tuple[Object, Object]:
    """Return two objects without values of Secrets; as in `kubectl diff`, only differences between them are visible."""
    shown = compared_without_secret_values(first, second, sides[0])
    return shown, compared_without_secret_values(second, first, sides[1])


def _found(obj: object) -> Iterator[Any]:
    found: list[Any] = []
    _walk(obj, _ABSENT, lambda value, _other: found.append(value))
    return iter(found)


def _walk(
    value: Any, other: Any, leaf: _Leaf, *, is_secret: bool = False, is_rule: bool = False, is_manifest: bool = False
) -> Any:
    """Return the value with every value of a Secret replaced by what `leaf` returns.

    `is_secret`: everything in it is such a value. `is_rule`: it is in an override. `is_manifest`: it is in a Secret.
    """
    if isinstance(value, Mapping):
        is_manifest |= value.get("kind") == "Secret"
        secret = _secret_keys(value, is_rule=is_rule, is_manifest=is_manifest)
        others = other if isinstance(other, Mapping) else {}
        return {
            key: _walk(
                entry,
                others.get(key, _ABSENT),
                leaf,
                is_secret=is_secret or key in secret,
                is_rule=is_rule or key == _RULES,
                is_manifest=is_manifest,
            )
            for key, entry in value.items()
        }
    if isinstance(value, list):
        rest = iter(other if isinstance(other, list) else ())
        inside = {"is_secret": is_secret, "is_rule": is_rule, "is_manifest": is_manifest}
        return [_walk(entry, next(rest, _ABSENT), leaf, **inside) for entry in value]
    if is_secret:
        return None if value is None else leaf(value, other)
    return _in_text(value, other, leaf) if isinstance(value, str) else value


def _secret_keys(value: Mapping[str, Any], *, is_rule: bool, is_manifest: bool) -> Collection[str]:
    """Return the keys of a mapping below which everything is a value of a Secret."""
    if value.get("kind") == "Secret":
        return [key for key in value if str(key).lower() in _SECRET_FIELDS]
    if is_rule and any(_points_into_data(value.get(field)) for field in _POINTERS):
        return _CHANGES
    return (LAST_APPLIED_CONFIGURATION,) if is_manifest else ()


def _points_into_data(pointer: object) -> bool:
    return isinstance(pointer, str) and pointer.removeprefix("/").partition("/")[0].lower() in _SECRET_FIELDS


def _in_text(text: str, other: Any, leaf: _Leaf) -> str:
    """Return a text without the values that it carries: one that is not JSON has none, or is one as a whole."""
    if (parsed := _parsed(text)) is _ABSENT:
        return leaf(text, other) if _is_manifest(text) else text
    replaced = _walk(parsed, _parsed(other) if isinstance(other, str) else _ABSENT, leaf)
    return text if replaced == parsed else orjson.dumps(replaced).decode()


def _is_manifest(text: str) -> bool:
    """Return whether a text has a manifest of a Secret with data, in whatever format."""
    if "Secret" not in text:
        return False
    return _MANIFEST_TEXT.search(text) is not None and _DATA_TEXT.search(text) is not None


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")) or _HINT.search(text.encode(errors="replace")) is None:
        return _ABSENT
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _ABSENT
