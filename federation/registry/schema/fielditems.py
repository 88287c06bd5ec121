"""What identifies an item of a list that is a set or is keyed. Pure; used by validation and rules."""

from collections.abc import Iterator
from typing import Any

import orjson

from federation.registry.schema.model import NO_DEFAULT, Schema


def duplicates(field: Schema, items: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yield (index, identity) of every item whose identity occurred before."""
    seen: set[bytes] = set()
    for index, item in enumerate(items):
        identity = item if field.list_type == "set" else _keys(field, item)
        text = orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)
        if text in seen:
            yield index, identity
        seen.add(text)


def by_key(field: Schema, items: Any) -> dict[tuple[Any, ...], Any]:
    """Return the items of a list that is merged by keys, by their keys; empty for every other value."""
    if field.list_type != "map" or not isinstance(items, list):
        return {}
    return {key_of(field, item): item for item in items}


def key_of(field: Schema, item: Any) -> tuple[Any, ...]:
    """Return the keys of an item of such a list."""
    return tuple(str(item.get(key)) for key in field.list_map_keys) if isinstance(item, dict) else ()


def _keys(field: Schema, item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    keys = {}
    for name in field.list_map_keys:
        value = item.get(name)
        if value is None and field.items is not None and name in field.items.properties:
            default = field.items.properties[name].default
            value = None if default is NO_DEFAULT else default
        keys[name] = value
    return keys
