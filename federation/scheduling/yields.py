"""Replicas that a workload may not have in a cluster because it gave them up, as an annotation of its federated object.

Preemption (`features/preemption`) writes the annotation; the scheduler caps the cluster by it and explains the cap.
This record is all that they share. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.apimachinery.jsonobject import parse_object


@dataclass(frozen=True, slots=True)
class Yield:
    """Replicas of a workload that give way in a cluster: it keeps at most `keeps` there, and gave `count` to `to`."""

    keeps: int
    count: int
    to: str


Yields = Mapping[str, Yield]
"""The given replicas of a workload, by cluster."""


def yields_from(text: str | None) -> dict[str, Yield]:
    """Return the record of an annotation by cluster; {} without one, and for one that is malformed."""
    found = {}
    for cluster, entry in (parse_object(text or "") or {}).items():
        if isinstance(entry, dict) and type(entry.get("keeps")) is int and type(entry.get("count")) is int:
            found[cluster] = Yield(max(0, entry["keeps"]), max(0, entry["count"]), str(entry.get("to") or ""))
    return found


def yields_to_text(yields: Yields) -> str | None:
    """Return the annotation of a record; None removes it."""
    entries: dict[str, Any] = {
        cluster: {"keeps": entry.keeps, "count": entry.count, "to": entry.to} for cluster, entry in yields.items()
    }
    return orjson.dumps(entries, option=orjson.OPT_SORT_KEYS).decode() if entries else None
