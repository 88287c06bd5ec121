"""An object as text for people, in the manner of `kubectl describe`: fields as words, conditions as a table. Pure.

It knows no kinds. Fields keep the order of the server; lists of named things are headed by their names, and small
mappings are written on one line.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.resources import Object
from federation.terminal.plaintext import to_age

_WIDTH = 16
_LINE_MAX = 100
"""The longest line that a mapping or a list is written on."""
_HIDDEN_ANNOTATIONS = ("kubectl.kubernetes.io/last-applied-configuration",)
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s\b)[a-z])")


def describe(cluster: str, obj: Object, events: Sequence[Object], now: datetime) -> list[str]:
    """Return the lines that describe an object of a member; `events` are those about it."""
    metadata = obj["metadata"]
    created = parse_rfc3339(metadata.get("creationTimestamp"))
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in _HIDDEN_ANNOTATIONS}
    owners = [f"{each.get('kind')}/{each.get('name')}" for each in metadata.get("ownerReferences") or ()]
    lines = [
        _field("Cluster", cluster),
        _field("Kind", str(obj.get("kind") or "")),
        _field("Name", str(metadata["name"])),
        *([_field("Namespace", metadata["namespace"])] if metadata.get("namespace") else []),
        *([_field("Age", to_age(now, created))] if created else []),
        *([_field("Deleted", f"since {metadata['deletionTimestamp']}")] if metadata.get("deletionTimestamp") else []),
        *([_field("Owners", ", ".join(owners))] if owners else []),
        *_pairs("Labels", metadata.get("labels") or {}),
        *_pairs("Annotations", annotations),
        *([_field("Finalizers", ", ".join(metadata["finalizers"]))] if metadata.get("finalizers") else []),
    ]
    for key, value in obj.items():
        if key == "status" and isinstance(value, Mapping):
            value = {name: each for name, each in value.items() if name != "conditions"}  # noqa: PLW2901  # shown below
        if key not in ("apiVersion", "kind", "metadata"):
            lines += _value(to_words(key), value, 0)
    conditions = (obj.get("status") or {}).get("conditions") if isinstance(obj.get("status"), Mapping) else None
    if isinstance(conditions, list) and conditions:
        lines += ["Conditions:", *_indented(align(_conditions(conditions, now)))]
    return [*lines, *(["Events:", *_indented(align(_events(events, now)))] if events else ["Events:  none"])]


def to_words(name: str) -> str:
    """Return the name of a field as words: `containerPort` as `Container Port`, `podIP` as `Pod IP`."""
    return " ".join(word[:1].upper() + word[1:] for word in _WORD.split(name))


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; the first row has the headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _field(label: str, text: str) -> str:
    return f"{label + ':':<{_WIDTH}} {text}"


def _pairs(label: str, pairs: Mapping[str, Any]) -> list[str]:
    """Return labels or annotations, one on a line."""
    texts = [f"{key}={_scalar(value)}" for key, value in sorted(pairs.items())]
    return [_field(label, texts[0]), *(f"{'':<{_WIDTH}} {text}" for text in texts[1:])] if texts else []


def _value(label: str, value: Any, depth: int) -> list[str]:
    """Return a field at a depth; an empty one takes no line."""
    if value in (None, "", [], {}):
        return []
    if (short := _short(value)) is not None and depth + len(label) + len(short) <= _LINE_MAX:
        return [f"{'  ' * depth}{label}:  {short}"]
    inner: Iterable[list[str]]
    if isinstance(value, Mapping):
        inner = (_value(_label(value, key), each, depth + 1) for key, each in value.items())
    elif isinstance(value, list):
        inner = (_item(each, depth + 1) for each in value)
    else:
        inner = [[f"{'  ' * (depth + 1)}{line}" for line in str(value).splitlines()]]
    return [f"{'  ' * depth}{label}:", *(line for lines in inner for line in lines)]


def _label(mapping: Mapping[str, Any], key: str) -> str:
    """Return a key as words, unless the keys are data, as those of a ConfigMap are."""
    is_data = any(not name.isidentifier() for name in mapping)
    return key if is_data else to_words(key)


def _item(item: Any, depth: int) -> list[str]:
    """Return an element of a list: its name and the rest of it, if it has one."""
    if (short := _short(item)) is not None:
        return [f"{'  ' * depth}{short}"]
    if isinstance(item, str):
        return [f"{'  ' * depth}{line}" for line in item.splitlines()]
    if not isinstance(item, Mapping):
        return [line for each in item for line in _item(each, depth)]
    named = item.get("name") or item.get("type") or item.get("key") or "-"
    rest = {key: value for key, value in item.items() if value is not named}
    return [
        f"{'  ' * depth}{named}:",
        *(line for k, v in rest.items() for line in _value(_label(rest, k), v, depth + 1)),
    ]


def _short(value: Any) -> str | None:
    """Return a value on one line, None if it needs more."""
    if isinstance(value, Mapping):
        if any(isinstance(each, Mapping | list) for each in value.values()):
            return None
        text = ", ".join(f"{key}={_scalar(each)}" for key, each in value.items())
    elif isinstance(value, list):
        if any(isinstance(each, Mapping | list) for each in value):
            return None
        text = ", ".join(map(_scalar, value))
    else:
        text = _scalar(value)
    return text if len(text) <= _LINE_MAX and "\n" not in text else None


def _scalar(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _conditions(conditions: Iterable[Mapping[str, Any]], now: datetime) -> list[list[str]]:
    rows = [["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"]]
    for each in conditions:
        since = parse_rfc3339(each.get("lastTransitionTime"))
        texts = (each.get("reason"), each.get("message"))
        age = to_age(now, since) if since else "-"
        rows.append([str(each.get("type")), str(each.get("status")), age, *(_one_line(text) for text in texts)])
    return rows


def _events(events: Iterable[Object], now: datetime) -> list[list[str]]:
    rows = [["TYPE", "REASON", "AGE", "FROM", "MESSAGE"]]
    for each in sorted(events, key=_time_of):
        last = parse_rfc3339(_time_of(each))
        count = each.get("count") or (each.get("series") or {}).get("count") or 1
        age = (to_age(now, last) if last else "-") + (f" (x{count})" if count > 1 else "")
        source = each.get("reportingComponent") or (each.get("source") or {}).get("component")
        rows.append(
            [
                *map(_one_line, (each.get("type"), each.get("reason"))),
                age,
                *map(_one_line, (source, each.get("message"))),
            ]
        )
    return rows


def _time_of(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


def _one_line(text: Any) -> str:
    return " ".join(str(text or "-").split())


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
