"""Columns, printers, and the cell formats that several kinds share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import format_label_selector

NONE = "<none>"
UNKNOWN = "<unknown>"
INVALID = "<invalid>"

Row = Callable[[Object, datetime], list[Any]]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; priority 0 is always shown, a higher one only with `-o wide`."""

    name: str
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def to_wire(self) -> dict[str, Any]:
        """Return the TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


NAME = Column("Name", format="name", description="Name must be unique within a namespace.")
AGE = Column("Age", description="Time since the object was created.")


@dataclass(frozen=True, slots=True)
class Printer:
    """The columns of a kind and the function that returns the cells of an object."""

    columns: tuple[Column, ...]
    row: Row

    def cells(self, obj: Object, now: datetime) -> list[Any]:
        """Return the cells of an object; `<invalid>` beside its name if its fields cannot be read.

        A client may have stored an odd status, and one object must not hide all others of a list.
        """
        try:
            return self.row(obj, now)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return [name_of(obj), *[INVALID] * (len(self.columns) - 1)]


def columns(text: str, wide: str = "") -> tuple[Column, ...]:
    """Return columns from names separated by `|`; `name:integer` sets a type."""
    return tuple(_columns(text, 0)) + tuple(_columns(wide, 1))


def _columns(text: str, priority: int) -> Iterable[Column]:
    for part in filter(None, text.split("|")):
        name, _, kind = part.partition(":")
        if name == "Name":
            yield NAME if priority == 0 else replace(NAME, priority=priority)
        elif name == "Age":
            yield AGE
        else:
            yield Column(name, kind or "string", priority)


def name_of(obj: Object) -> str:
    """Return an object's name."""
    name: str = obj["metadata"].get("name", "")
    return name


def age(obj: Object, now: datetime) -> str:
    """Return the age of an object."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def since(moment: Any, now: datetime) -> str:
    """Return the time since a timestamp in kubectl's format, `<unknown>` without one."""
    if not moment:
        return UNKNOWN
    try:
        return human_duration((now - from_rfc3339(moment)).total_seconds())
    except (ValueError, TypeError):
        return INVALID


def human_duration(seconds_exact: float) -> str:
    """Return a duration with at most two units, as HumanDuration of k8s.io/apimachinery."""
    seconds = int(seconds_exact)
    if seconds < -1:
        return INVALID
    if seconds < 0:
        return "0s"
    if seconds < 120:
        return f"{seconds}s"
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 10:
        return _join_units(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _join_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _join_units(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _join_units(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _join_units(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Format a LabelSelector."""
    return (format_label_selector(selector) if selector else "") or NONE


def name_and_age(obj: Object, now: datetime) -> list[Any]:
    """Return the cells of a kind without its own columns."""
    return [name_of(obj), age(obj, now)]


def created(obj: Object, now: datetime) -> list[Any]:
    """Return the cells of a kind that is listed with its creation time."""
    del now
    return [name_of(obj), obj["metadata"].get("creationTimestamp", "")]


def printers(tables: Mapping[str, tuple[str, str, Row]]) -> dict[tuple[str, str], Printer]:
    """Return the printers by group and plural, from columns, wide columns and row by `PLURAL.GROUP`."""
    found = {}
    for group_resource, (shown, wide, row) in tables.items():
        plural, _, group = group_resource.partition(".")
        found[group, plural] = Printer(columns(shown, wide), row)
    return found


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Format a map of labels."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def containers_of(template: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the names and the images of a pod template's containers."""
    containers = ((template or {}).get("spec") or {}).get("containers") or []
    names = ",".join(container.get("name", "") for container in containers)
    return names, ",".join(container.get("image", "") for container in containers)


def part(obj: Object, name: str) -> Mapping[str, Any]:
    """Return a top-level mapping of an object, {} if it is absent."""
    found = obj.get(name)
    return found if isinstance(found, dict) else {}
