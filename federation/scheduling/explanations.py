"""Read explanations of decisions, as a table for people: one row per cluster, and what is in force. Pure.

`explain.py` writes them. This module does not import the engine, because commands read explanations too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """One cluster in a decision. `scores` maps plugins to (raw, normalised); `replicas` None: as in the template."""

    name: str
    is_selected: bool = False
    rejected_by: str = ""
    reasons: tuple[str, ...] = ()
    scores: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    total: int | None = None
    replicas: int | None = None
    previous: int | None = None
    was_selected: bool = False
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def in_force(explanation: Mapping[str, Any]) -> Mapping[str, int | None]:
    """Return the placement after a decision: an unsuccessful one keeps the previous placement."""
    placed: Mapping[str, int | None] = explanation.get("placements") or explanation.get("previous") or {}
    return placed


def is_decided(explanation: Mapping[str, Any]) -> bool:
    """Return whether there was a decision; otherwise it was deferred or impossible."""
    return "unit" in explanation


def is_in_force(explanation: Mapping[str, Any]) -> bool:
    """Return whether the decision was successful."""
    return is_decided(explanation) and bool(explanation.get("placements"))


def kept_placement(explanation: Mapping[str, Any]) -> str:
    """Return, in one line, the placement kept without a successful decision, "" for none."""
    if is_in_force(explanation):
        return ""
    return ", ".join(name if count is None else f"{name} {count}" for name, count in in_force(explanation).items())


def rows(explanation: Mapping[str, Any]) -> list[ClusterRow]:
    """Return one row per cluster of a parsed explanation, selected ones first, then available, then rejected ones."""
    rejected = explanation.get("rejected") or {}
    placements, previous = explanation.get("placements") or {}, explanation.get("previous") or {}
    scores, remarks = explanation.get("scores") or {}, explanation.get("remarks") or {}
    index = {name: position for position, name in enumerate(scores.get("clusters") or ())}
    result = []
    for name in dict.fromkeys((*explanation.get("clusters", ()), *previous)):
        position, refusal = index.get(name), rejected.get(name) or {}
        result.append(
            ClusterRow(
                name=name,
                is_selected=name in placements,
                rejected_by=refusal.get("plugin", ""),
                reasons=tuple(refusal.get("reasons") or ()),
                scores={} if position is None else _scores_at(scores, position),
                total=None if position is None else scores["totals"][position],
                replicas=placements.get(name),
                previous=previous.get(name),
                was_selected=name in previous,
                remarks={plugin: tuple(said[name]) for plugin, said in remarks.items() if name in said},
            )
        )
    return sorted(result, key=lambda row: (not row.is_selected, bool(row.rejected_by), -(row.total or 0), row.name))


def _scores_at(scores: Mapping[str, Any], position: int) -> dict[str, tuple[int, int]]:
    return {part["plugin"]: (part["raw"][position], part["normalised"][position]) for part in scores["plugins"]}
