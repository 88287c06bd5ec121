"""How a member's object differs from what the federation applies, field by field, and who wrote what. Pure.

`live` is the object as the member returns it, with its managedFields. Three lists come out: fields of ours with another
value, fields of the template that keep the member's value on purpose, and the other managers of the object. Values are
told only of fields that the federation's template names; of what others own, there are the names of its parts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api.secretvalues import both_without_secret_values
from federation.apimachinery.resources import Object
from federation.planning.drift.fields import Author, Field, author_of, drifted_fields, managers_of, value_at
from federation.planning.rendering.comparison import without_bookkeeping

FIELDS_MAX = 50
_TEXT_MAX = 300
_MANAGERS_MAX = 20
_SIDES = ("wanted", "live")


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field: the value that is wanted, the member's ("" for none), and its last writer other than us, if known."""

    field: str
    wanted: str
    live: str
    author: Author | None


@dataclass(frozen=True, slots=True)
class Manager:
    """Somebody else who owns parts of the object, such as `spec.template`."""

    author: Author
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiveDifference:
    """The three lists; `has_more` tells that there are more differing fields."""

    different: tuple[FieldDifference, ...]
    kept: tuple[FieldDifference, ...]
    managers: tuple[Manager, ...]
    has_more: bool


def compare_live(rendered: Object, applied: Object, live: Mapping[str, Any]) -> LiveDifference:
    """Return the differences of a live object.

    `rendered` is the template with overrides, `applied` the same with what an apply keeps of the member's values.
    """
    wanted = without_bookkeeping(applied)
    found = drifted_fields(wanted, live, fields_max=FIELDS_MAX + 1)
    shown, shown_live = both_without_secret_values(wanted, live, _SIDES)
    return LiveDifference(
        tuple(_difference(field, shown, shown_live, author_of([field], live)) for field in found[:FIELDS_MAX]),
        tuple(_kept(rendered, applied, live)),
        tuple(Manager(author, parts) for author, parts in managers_of(live)[:_MANAGERS_MAX]),
        len(found) > FIELDS_MAX,
    )


def _kept(rendered: Object, applied: Object, live: Mapping[str, Any]) -> Iterator[FieldDifference]:
    """Yield the template's fields whose value the apply does not send, and that the member has with another value."""
    shown, shown_live = both_without_secret_values(rendered, live, _SIDES)
    for field in drifted_fields(rendered, applied, fields_max=FIELDS_MAX):
        difference = _difference(field, shown, shown_live, author_of([field], live))
        if difference.wanted != difference.live:
            yield difference


def _difference(
    field: Field, wanted: Mapping[str, Any], live: Mapping[str, Any], author: Author | None
) -> FieldDifference:
    shown, shown_live = (_to_text(value_at(each, field.steps)) for each in (wanted, live))
    return FieldDifference(field.name, shown, shown_live, author)


def _to_text(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) and value else orjson.dumps(value).decode()
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}…"
