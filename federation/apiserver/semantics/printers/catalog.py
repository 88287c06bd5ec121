"""Find the printer of a kind: a built-in one, the `additionalPrinterColumns` of a CRD, or Name and Age."""

from datetime import datetime
from typing import Any, Final

import orjson

from federation.apimachinery import jsonpath
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.kinds.kinds import KindInfo, PrinterColumn
from federation.apiserver.semantics.printers import (
    clustercolumns,
    othercolumns,
    podcolumns,
    storagecolumns,
    workloadcolumns,
)
from federation.apiserver.semantics.printers.table import NAME, Column, Printer, columns, name_and_age, name_of, since

_PRINTERS = {
    **workloadcolumns.PRINTERS,
    **podcolumns.PRINTERS,
    **othercolumns.PRINTERS,
    **storagecolumns.PRINTERS,
    **clustercolumns.PRINTERS,
}
_DEFAULT = Printer(columns("Name|Age"), name_and_age)
_COLUMNS_MAX: Final = 64
_ROW_CHARS_MAX: Final = 16 * 1024
"""Text in the custom columns of one row. A column may show a whole object, and a definition has many columns."""
_MORE: Final = "…"
_AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp")


def printer_of(info: KindInfo) -> Printer:
    """Return the printer of a kind."""
    resource = info.resource
    if info.is_custom:
        return _custom_printer(info.columns or (_AGE,))
    printer = _PRINTERS.get((resource.group, resource.plural), _DEFAULT)
    return _with_columns(printer, info.columns) if info.columns else printer


def _with_columns(printer: Printer, added: tuple[PrinterColumn, ...]) -> Printer:
    def row(obj: Object, now: datetime) -> list[Any]:
        return [*printer.cells(obj, now), *(_cell(obj, column, now) for column in added)]

    return Printer((*printer.columns, *map(_to_column, added)), row)


def _custom_printer(wanted: tuple[PrinterColumn, ...]) -> Printer:
    wanted = wanted[:_COLUMNS_MAX]
    definitions = tuple(map(_to_column, wanted))

    def row(obj: Object, now: datetime) -> list[Any]:
        cells, left = [], _ROW_CHARS_MAX
        for column in wanted:
            cell = _cell(obj, column, now) if left else _MORE
            if isinstance(cell, str) and len(cell) > left:
                cell = cell[:left] + _MORE
            left -= min(len(cell), left) if isinstance(cell, str) else 0
            cells.append(cell)
        return [name_of(obj), *cells]

    return Printer((NAME, *definitions), row)


def _to_column(column: PrinterColumn) -> Column:
    return Column(column.name, column.type, column.priority, column.format, column.description)


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
