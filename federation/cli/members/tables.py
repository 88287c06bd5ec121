"""The Tables of several members as one table with a CLUSTER column. Pure.

Members can have different versions of Kubernetes, and so different columns: the table has those of all, in the order in
which they appear, and `<none>` where a member has no such column.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from federation.api import names
from federation.apimachinery.resources import Object, Resource

ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
"""Asks a server for a Table; the object itself from one that cannot."""
_ABSENT = "<none>"


@dataclass(frozen=True, slots=True)
class Row:
    """One object of one member: its cells by heading."""

    cluster: str
    namespace: str
    name: str
    cells: Mapping[str, str]


def columns_of(table: Object, *, is_wide: bool) -> list[tuple[int, str]]:
    """Return position and heading of each column to print; columns with a priority are for wide output."""
    return [
        (position, str(column.get("name") or "").upper())
        for position, column in enumerate(table.get("columnDefinitions") or ())
        if is_wide or not column.get("priority")
    ]


def to_rows(cluster: str, table: Object, columns: Sequence[tuple[int, str]]) -> list[Row]:
    """Return the rows of a Table of one member."""
    found = []
    for row in table.get("rows") or ():
        metadata = (row.get("object") or {}).get("metadata") or {}
        cells = row.get("cells") or ()
        texts = {heading: _text(cells[position]) for position, heading in columns if position < len(cells)}
        found.append(Row(cluster, str(metadata.get("namespace") or ""), str(metadata.get("name") or ""), texts))
    return found


def headings_of(rows: Iterable[Row]) -> list[str]:
    """Return the headings of all rows, each once."""
    return list(dict.fromkeys(heading for row in rows for heading in row.cells))


def to_lines(rows: Iterable[Row], headings: Sequence[str], *, has_namespace: bool) -> list[list[str]]:
    """Return the cells of each row: cluster, namespace if wanted, and those under the headings."""
    return [
        [row.cluster, *([row.namespace] if has_namespace else []), *(row.cells.get(each, _ABSENT) for each in headings)]
        for row in rows
    ]


def with_kind(row: Row, resource: Resource) -> Row:
    """Return the row with `deployment.apps/nginx` as its name."""
    group = f".{resource.group}" if resource.group else ""
    return replace(row, cells={**row.cells, "NAME": f"{resource.kind.lower()}{group}/{row.name}"})


def with_cluster(cluster: str, obj: Object) -> Object:
    """Return an object of a member with the annotation that names the member, and without field managers."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), names.MEMBER_CLUSTER: cluster}
    return {**obj, "metadata": metadata}


def _text(cell: Any) -> str:
    """Return a cell as kubectl prints it: on one line."""
    if cell is None:
        return _ABSENT
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(cell).partition("\n")[0]
