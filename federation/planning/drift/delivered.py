"""Find drift without the host, from the records in a member's own objects, and plan repairs. Pure.

Members are written by server-side apply, so `metadata.managedFields` names exactly the fields of the last apply.
`delivered_of` takes these fields out of an object: the applied configuration, without a second copy that somebody has
to send. An agent records them while the host is connected and repairs by `plan_repair` while it is away
(docs/decisions/0060-agents-repair-drift.md). What a member writes is not trusted to be well-formed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from federation.apimachinery import dotpaths
from federation.apimachinery.resources import Object
from federation.planning.drift.fields import applied_entry, has_key
from federation.planning.federatedobject.finished import is_finished, kind_of, runs_to_completion
from federation.planning.rendering.drift import is_subset
from federation.planning.rendering.memberowned import keep_member_values
from federation.planning.rendering.retention import leave_to_scaler

_SELF = "."


@dataclass(frozen=True, slots=True)
class Delivered:
    """One object as the federation delivered it."""

    configuration: Object
    """The fields of the last apply."""
    uid: str
    applied: str
    """The time of that apply in RFC 3339, as the member recorded it."""


def delivered_of(live: Mapping[str, Any]) -> Delivered | None:
    """Return what was delivered, None for an object that the federation has not applied or that is being deleted."""
    entry, metadata = applied_entry(live), live.get("metadata") or {}
    if entry is None or entry.get("apiVersion") != live.get("apiVersion") or metadata.get("deletionTimestamp"):
        return None
    try:
        others = [each["fieldsV1"] for each in metadata["managedFields"] if each is not entry and "fieldsV1" in each]
        fields = _extract(live, entry["fieldsV1"], others)
        owned = fields.pop("metadata", {})
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    fields.pop("status", None)
    identity = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    configuration = {
        "apiVersion": live["apiVersion"],
        "kind": live.get("kind"),
        "metadata": {**owned, **identity},
        **fields,
    }
    return Delivered(configuration, str(metadata.get("uid", "")), str(entry.get("time", "")))


def is_superseded(delivered: Delivered, live: Mapping[str, Any]) -> bool:
    """Return whether the federation has applied the object again since it was recorded."""
    entry = applied_entry(live)
    return entry is not None and str(entry.get("time", "")) > delivered.applied


def plan_repair(
    delivered: Delivered, live: Mapping[str, Any] | None, replicas_path: dotpaths.Path = ()
) -> Object | None:
    """Return the configuration to apply, None if nothing has drifted or the object must be left alone.

    An object that is being deleted, or was created again, is left alone, and so are replicas that were set through the
    subresource `scale`: only the host knows whether an autoscaler may do that. Fields that a member changes by design
    (`rendering/memberowned.py`) keep its values. An object that has finished is left alone, and one of a kind that
    finishes is not created again: it may have run.
    """
    wanted = delivered.configuration
    kind = kind_of(wanted)
    if live is None:
        return None if runs_to_completion(*kind) else wanted
    if is_finished(kind, live):
        return None
    metadata = live["metadata"]
    if metadata.get("deletionTimestamp") or metadata.get("uid") != delivered.uid:
        return None
    wanted = keep_member_values(leave_to_scaler(wanted, live, replicas_path), live)
    if is_subset(wanted, live):
        return None
    # With the uid, an object that is deleted and created again at this moment is not written.
    return {**wanted, "metadata": {**wanted["metadata"], "uid": delivered.uid}}


def _extract(value: Any, tree: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Any:
    """Return the parts of a value that a set of fields names; `others` are the sets of other owners.

    A set without parts stands for a value that has none (a map with the fields of others only) or is never divided (a
    selector). Only the former can have parts with other owners.
    """
    parts = {element: below for element, below in tree.items() if element != _SELF}
    if not parts:
        is_divided = any(other.keys() - {_SELF} for other in others)
        return value if not is_divided else [] if isinstance(value, list) else {}
    if isinstance(value, Mapping):
        return {
            name: _extract(value[name], below, _below(others, element))
            for element, below in parts.items()
            if (name := element.removeprefix("f:")) in value
        }
    if not isinstance(value, list):
        return value
    found: dict[int, Any] = {}
    for element, below in parts.items():
        kind, _, text = element.partition(":")
        if (position := _find_item(value, kind, orjson.loads(text))) is not None:
            found[position] = _extract_item(value[position], element, below, _below(others, element))
    return [found[position] for position in sorted(found)]


def _below(others: Sequence[Mapping[str, Any]], element: str) -> list[Mapping[str, Any]]:
    return [other[element] for other in others if element in other]


def _find_item(items: list[Any], kind: str, wanted: Any) -> int | None:
    """Return the position of the item that an element of a set names: by key, by value, or by position."""
    for position, item in enumerate(items):
        if kind == "k" and isinstance(item, Mapping) and all(has_key(item, *each) for each in wanted.items()):
            return position
        if (kind == "v" and item == wanted) or (kind == "i" and position == wanted):
            return position
    return None


def _extract_item(item: Any, element: str, tree: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> Any:
    """Return the named parts of one item of a list, with its key."""
    if not element.startswith("k:"):
        return item
    key = {name: item[name] for name in orjson.loads(element[2:]) if name in item}
    return {**key, **(_extract(item, tree, others) if tree.keys() - {_SELF} else {})}
