"""Build meta.k8s.io/v1 Tables of lists, single objects and watch events for `kubectl get` (`as=Table`). Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import orjson

from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.printers.catalog import printer_of

IncludeObject = Literal["Metadata", "None", "Object"]


def to_table(
    info: KindInfo,
    items: Sequence[bytes],
    *,
    now: datetime,
    include_object: IncludeObject = "Metadata",
    resource_version: str = "",
    continue_token: str = "",
    remaining: int = 0,
    has_columns: bool = True,
) -> dict[str, Any]:
    """Return a Table of object bytes, ready for orjson.

    `include_object` selects the object in each row. Only the first event of a watch has columns (`has_columns`).
    """
    printer = printer_of(info)
    metadata: dict[str, Any] = {"resourceVersion": resource_version}
    if continue_token:
        metadata["continue"] = continue_token
    if remaining:
        metadata["remainingItemCount"] = remaining
    rows = []
    for value in items:
        obj = encoding.decode(value)
        row: dict[str, Any] = {"cells": printer.cells(obj, now)}
        if include_object == "Object":
            row["object"] = orjson.Fragment(value)
        else:
            row["object"] = to_partial(obj) if include_object == "Metadata" else None
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.to_wire() for column in printer.columns] if has_columns else [],
        "rows": rows,
    }


def to_partial(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the PartialObjectMetadata of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
