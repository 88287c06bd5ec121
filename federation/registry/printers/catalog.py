"""Which printer a kind has: one of its own, one made from a CustomResourceDefinition's columns, or Name and Age."""

from datetime import datetime
from typing import Any

import orjson

from federation.api.resources import Object
from federation.registry.kinds import KindInfo, PrinterColumn
from federation.registry.printers import jsonpath, others, pods, workloads
from federation.registry.printers.table import NAME, Column, Printer, columns, name_of, since

_PRINTERS = {**workloads.PRINTERS, **pods.PRINTERS, **others.PRINTERS}
_PLAIN = Printer(columns("Name|Age"), others.plain)
_CREATED = PrinterColumn("Age", "date", ".metadata.creationTimestamp")


def printer_of(info: KindInfo) -> Printer:
    """Return how a kind is printed."""
    resource = info.resource
    if info.is_custom:
        return _custom(info.columns or (_CREATED,))
    return _PRINTERS.get((resource.group, resource.plural), _PLAIN)


def _custom(wanted: tuple[PrinterColumn, ...]) -> Printer:
    shown = tuple(
        Column(column.name, column.type, column.priority, column.format, column.description) for column in wanted
    )

    def row(obj: Object, now: datetime) -> list[Any]:
        return [name_of(obj), *(_cell(obj, column, now) for column in wanted)]

    return Printer((NAME, *shown), row)


def _cell(obj: Object, column: PrinterColumn, now: datetime) -> Any:
    values = jsonpath.find(obj, column.json_path)
    if not values:
        return None
    value = values[0]
    match column.type:
        case "date":
            return since(value, now)
        case "integer":
            return int(value) if isinstance(value, int | float) else None
        case "number":
            return value if isinstance(value, int | float) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case _:
            return " ".join(_text(item) for item in values)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode()
