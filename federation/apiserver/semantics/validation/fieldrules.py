"""Bounds of fields as data: one row per field, for what kube-apiserver checks in code and its schemas do not say.

A row names the path of a field, with `[]` after lists, and a check of its value. Rules about several fields at once are
functions in the other modules.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    invalid,
    non_negative,
    not_supported,
    problems_of,
    required,
)

Fields = Mapping[str, Any]
Check = Callable[[Any, str], Causes]
"""Returns the causes of a value, None if it is absent, in a field."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for the field at `path`. Elements of a list that is null or absent are not checked."""

    path: str
    check: Check


def validate_rules(rules: Sequence[Rule], obj: Fields) -> Causes:
    """Return the causes of an object's fields."""
    return [found for rule in rules for field, value in _values(obj, rule.path) for found in rule.check(value, field)]


def _values(obj: Fields, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a path and their values. Absent parents have none."""
    part, _, rest = path.partition(".")
    name = part.removesuffix("[]")
    value = obj.get(name)
    found = [(name, value)] if name == part else [(f"{name}[{index}]", item) for index, item in enumerate(value or ())]
    for field, each in found:
        if not rest:
            yield field, each
        elif each is not None or name != part:  # Go reads a null in a list as an empty object
            yield from ((f"{field}.{below}", inner) for below, inner in _values(each or {}, rest))


def is_present(value: Any, field: str) -> Causes:
    """Require a value."""
    return [] if value else [required(field)]


def is_not_negative(value: Any, field: str) -> Causes:
    """Require 0 or more; None is not checked."""
    return non_negative(field, value)


def is_one_of(*supported: str) -> Check:
    """Require a member of a closed set; None is not checked."""
    return lambda value, field: [] if value is None or value in supported else [not_supported(field, value, supported)]


def has_format(problems: Callable[[str], Iterable[str]], *, may_be_empty: bool = True) -> Check:
    """Require texts of a format. `may_be_empty` is whether "" is as good as an absent text."""

    def check(value: Any, field: str) -> Causes:
        if value is None or (may_be_empty and not value):
            return []
        return problems_of(field, value, problems(value))

    return check


def is_between(least: int, most: int, too_small: str, too_large: str = "") -> Check:
    """Require a number from `least` to `most`, with the text for smaller and for larger ones; None is not checked."""

    def check(value: Any, field: str) -> Causes:
        if value is None or least <= value <= most:
            return []
        return [invalid(field, value, (too_large if value > most else "") or too_small)]

    return check


def has_unique(name: str) -> Check:
    """Require that the items of a list differ in a field."""

    def check(value: Any, field: str) -> Causes:
        seen: list[Any] = []
        causes: Causes = []
        for index, item in enumerate(value or ()):
            found = (item or {}).get(name)
            if found in seen:
                causes.append(duplicate(f"{field}[{index}].{name}", found))
            seen.append(found)
        return causes

    return check


def has_known_finalizers(value: Any, field: str) -> Causes:
    """Require finalizers with a domain, or Kubernetes' own."""
    causes: Causes = []
    text = "name is neither a standard finalizer name nor is it fully qualified"
    for name in value or ():
        causes += problems_of(field, name, nameformats.qualified_name(name))
        if "/" not in name and name not in {"kubernetes", "orphan", "foregroundDeletion"}:
            causes.append(invalid(field, name, text))
    return causes
