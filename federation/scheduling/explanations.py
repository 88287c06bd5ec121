"""Read explanations of decisions, as a table for people: one row per cluster, and what is in force. Pure.

`explain.py` writes them. This module does not import the engine, because commands read explanations too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.naturalorder import natural_key


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
    group: str = ""
    """The group of clusters of the policy that it is in."""
    group_unused: str = ""
    """Why nothing is placed in its group, "" where something is."""


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
    groups = explanation.get("groups") or {}
    unused = _unused_groups(explanation, groups, placements)
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
                group=groups.get(name, ""),
                group_unused=unused.get(groups.get(name, ""), ""),
                remarks={plugin: tuple(said[name]) for plugin, said in remarks.items() if name in said},
            )
        )
    result.sort(key=lambda row: natural_key(row.name))
    return sorted(result, key=lambda row: (not row.is_selected, bool(row.rejected_by), -(row.total or 0)))


def _unused_groups(
    explanation: Mapping[str, Any], groups: Mapping[str, str], placements: Mapping[str, Any]
) -> dict[str, str]:
    """Return why the groups are not used that nothing is placed in; {} without a placement."""
    used = list(dict.fromkeys(groups[name] for name in placements if name in groups))
    if not used:
        return {}
    verb = "holds" if len(used) == 1 else "hold"
    what = "its copies" if (explanation.get("unit") or {}).get("mode") == "Duplicate" else "all replicas"
    because = f"is not needed: {' and '.join(used)} {verb} {what}"
    if explanation.get("unplaced") or (explanation.get("division") or {}).get("waiting"):
        because = f"is not used: the object is in {' and '.join(used)}"
    return {group: f"group {group} {because}" for group in groups.values() if group not in used}


def _scores_at(scores: Mapping[str, Any], position: int) -> dict[str, tuple[int, int]]:
    return {part["plugin"]: (part["raw"][position], part["normalised"][position]) for part in scores["plugins"]}
