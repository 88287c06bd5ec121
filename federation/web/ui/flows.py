"""Flows of moves between clusters: which lost replicas by the decisions of some time, and which got them. Pure.

A decision says how many replicas each cluster had before and has after it, not which replica went where. Where several
clusters lose and several gain, replicas are taken to stay in their region if it gains some, and otherwise go from the
largest loss to the largest gain. What a decision adds or takes away altogether is no move.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.naturalorder import natural_key
from federation.scheduling.explanations import in_force, is_decided
from federation.web.ui.decisionline import to_link


@dataclass(slots=True)
class Flow:
    """Moves from one place to another; `at`, `name` and `link` are those of the newest decision.

    A copy of an object that is not divided counts as one replica.
    """

    source: str
    target: str
    at: str
    name: str
    link: str
    replicas: int = 0
    objects: int = 0


def moved_by(explanation: Mapping[str, Any], regions: Mapping[str, str]) -> list[tuple[str, str, int]]:
    """Return source, target and number of replicas of each move of a decision."""
    before, after = explanation.get("previous"), in_force(explanation)
    if not before or not is_decided(explanation):
        return []
    lost, gained = dict[str, int](), dict[str, int]()
    for name in dict.fromkeys((*before, *after)):
        if change := _count(after, name) - _count(before, name):
            (gained if change > 0 else lost)[name] = abs(change)
    if not (lost and gained):
        return []
    moves = []
    for is_within in (True, False):
        for source in _largest_first(lost):
            for target in _largest_first(gained):
                if is_within and regions.get(source) != regions.get(target):
                    continue
                if count := min(lost[source], gained[target]):
                    moves.append((source, target, count))
                    lost[source] -= count
                    gained[target] -= count
    return moves


def flows_between(records: Iterable[Mapping[str, Any]], regions: Mapping[str, str]) -> list[Flow]:
    """Return the flows between clusters of decisions, newest first, the largest flow first."""
    found: dict[tuple[str, str], Flow] = {}
    for record in records:
        for source, target, count in moved_by(record["explanation"], regions):
            flow = found.get((source, target))
            if flow is None:
                flow = Flow(source, target, str(record["at"]), str(record["name"]), to_link(record))
                found[source, target] = flow
            flow.replicas += count
            flow.objects += 1
    return sorted(found.values(), key=lambda flow: (-flow.replicas, natural_key(flow.source), natural_key(flow.target)))


def _count(placed: Mapping[str, int | None], name: str) -> int:
    if name not in placed:
        return 0
    count = placed[name]
    return 1 if count is None else count


def _largest_first(counts: Mapping[str, int]) -> list[str]:
    return sorted((name for name in counts if counts[name]), key=lambda name: (-counts[name], natural_key(name)))
