"""The identity of items in lists with `x-kubernetes-list-type` set or map. Pure."""

from collections.abc import Iterator
from typing import Any

import orjson

from federation.apiserver.semantics.schema.model import NO_DEFAULT, Schema


def duplicates(field: Schema, items: list[Any]) -> Iterator[tuple[int, Any]]:
    """Yield (index, identity) of every item that repeats the identity of an earlier item."""
    seen: set[bytes] = set()
    for index, item in enumerate(items):
        identity = item if field.list_type == "set" else _map_keys(field, item)
        text = orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)
        if text in seen:
            yield index, identity
        seen.add(text)


def index_by_key(field: Schema, items: Any) -> dict[tuple[Any, ...], Any]:
    """Return the items of a list of type map by their keys; {} for every other value."""
    if field.list_type != "map" or not isinstance(items, list):
        return {}
    return {item_key(field, item): item for item in items}


def item_key(field: Schema, item: Any) -> tuple[Any, ...]:
    """Return the key values of one item of a list of type map."""
    return tuple(str(item.get(key)) for key in field.list_map_keys) if isinstance(item, dict) else ()


def _map_keys(field: Schema, item: Any) -> Any:
    """Return an item's keys by name, with schema defaults for absent ones."""
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
