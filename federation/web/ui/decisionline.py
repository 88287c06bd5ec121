"""Decisions as entries of a time line: outcome, what changed, and which clusters gained or lost replicas. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from federation.scheduling.decisiontext import replicas_text
from federation.scheduling.explanations import in_force, is_decided
from federation.scheduling.triggerwords import describe_deferral, describe_triggers

PATH = "/ui/decisions"
_MOVES_MAX = 6
_TONES = {"Scheduled": "good", "MoveUndone": "good", "Sticky": "unknown", "Deferred": "unknown"}
_WORDS = {"Sticky": "Kept"}
_ALL = -1
"""Stands for "as many replicas as in the template"."""


@dataclass(frozen=True, slots=True)
class Move:
    """A cluster whose placement a decision changed; `tone` is "good" for more and "bad" for less."""

    cluster: str
    before: str
    after: str
    tone: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One decision. `tone` colours it; `link` is the address of its page; `cause` says what led to it."""

    at: str
    group: str
    kind: str
    namespace: str
    name: str
    link: str
    tone: str
    outcome: str
    cause: str
    reason: str
    moves: tuple[Move, ...]
    moves_more: int
    stays: int
    repeats: int
    last_at: str
    is_decided: bool


def to_entry(record: Mapping[str, Any]) -> Entry:
    """Return the entry of a record of the journal."""
    explanation, outcome = record["explanation"], str(record["outcome"])
    changed, placed = changed_clusters(explanation), in_force(explanation)
    moved = frozenset(changed)
    tone = _TONES.get(outcome, "bad")
    return Entry(
        at=record["at"],
        group=record["group"],
        kind=record["kind"],
        namespace=record["namespace"],
        name=record["name"],
        link=to_link(record),
        tone="warn" if tone == "good" and explanation.get("unplaced") else tone,
        outcome=to_words(outcome),
        cause=_cause(explanation),
        reason=describe_deferral(str(explanation.get("reason") or "")),
        moves=tuple(_to_moves(explanation, changed[:_MOVES_MAX])),
        moves_more=max(0, len(changed) - _MOVES_MAX),
        stays=sum(cluster not in moved for cluster in placed),
        repeats=int(record.get("repeats") or 0),
        last_at=str(record.get("lastAt") or ""),
        is_decided=is_decided(explanation),
    )


def to_link(record: Mapping[str, Any], **query: str) -> str:
    """Return the address of the decision, a link that stays valid as long as the journal has it."""
    parts = (record["group"] or "core", record["kind"], record["namespace"] or "-", record["name"])
    return f"{PATH}/{'/'.join(quote(part, safe='') for part in parts)}?{urlencode({'at': record['at'], **query})}"


def to_words(reason: str) -> str:
    """Return a CamelCase reason as words: `NoFeasibleCluster` as "No feasible cluster"."""
    if reason in _WORDS:
        return _WORDS[reason]
    words = "".join(f" {char.lower()}" if char.isupper() else char for char in reason).strip()
    return words[:1].upper() + words[1:]


def changed_clusters(explanation: Mapping[str, Any]) -> list[str]:
    """Return the clusters whose placement the decision changed, largest changes first."""
    if not is_decided(explanation):
        return []
    before, after = explanation.get("previous") or {}, in_force(explanation)
    changed = [name for name in dict.fromkeys((*after, *before)) if _count(before, name) != _count(after, name)]
    changed.sort(key=lambda name: (-abs((_count(after, name) or 0) - (_count(before, name) or 0)), name))
    return changed


def grown_clusters(explanation: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield each cluster whose placement the decision changed, and whether it got more, in no order."""
    if is_decided(explanation):
        before, after = explanation.get("previous") or {}, in_force(explanation)
        for name in dict.fromkeys((*after, *before)):
            if _count(before, name) != _count(after, name):
                yield name, _is_more(before, after, name)


def moves_of(explanation: Mapping[str, Any]) -> list[Move]:
    """Return the moves of a decision, largest changes first."""
    return _to_moves(explanation, changed_clusters(explanation))


def _to_moves(explanation: Mapping[str, Any], changed: Sequence[str]) -> list[Move]:
    before, after = explanation.get("previous") or {}, in_force(explanation)
    return [
        Move(
            name,
            replicas_text(before.get(name), is_present=name in before),
            replicas_text(after.get(name), is_present=name in after),
            "good" if _is_more(before, after, name) else "bad",
        )
        for name in changed
    ]


def in_force_before(records: Sequence[Mapping[str, Any]], position: int) -> Mapping[str, Any] | None:
    """Return the last record before the one at `position` (newest first) in which the scheduler ran."""
    earlier = records[position + 1 :]
    return next((record for record in earlier if is_decided(record["explanation"])), next(iter(earlier), None))


def _cause(explanation: Mapping[str, Any]) -> str:
    if because := explanation.get("because"):
        return f"changed: {describe_triggers(because)}"
    if is_decided(explanation) and not explanation.get("previous"):
        return "first placement"
    return ""


def _count(placed: Mapping[str, int | None], name: str) -> int | None:
    if name not in placed:
        return None
    count = placed[name]
    return _ALL if count is None else count


def _is_more(before: Mapping[str, int | None], after: Mapping[str, int | None], name: str) -> bool:
    if name not in after:
        return False
    return name not in before or (after[name] or 0) > (before[name] or 0)
