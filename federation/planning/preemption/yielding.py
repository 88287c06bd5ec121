"""Choose the replicas that give way to a workload of higher priority, and their record on the workload that loses them.

No more give way than needed: without any one of the chosen replicas, less of the request would be met. Nobody gives more
than its budget, and nobody gives way to an equal. Pure; `controllers/schedule/preemption.py` acts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.apimachinery.jsonobject import parse_object

Resources = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Victim:
    """A workload with replicas in the cluster: at most `most` of them may give way."""

    key: tuple[str, str]
    priority: int
    request: Resources
    most: int


@dataclass(frozen=True, slots=True)
class Yield:
    """Replicas of a workload that give way in a cluster: it keeps at most `keeps`, and gave `count` to `to`."""

    keeps: int
    count: int
    to: str


def choose_victims(missing: Resources, priority: int, victims: Iterable[Victim]) -> dict[tuple[str, str], int]:
    """Return how many replicas of which victims give way, so that `missing` becomes free as far as possible."""
    ranked = sorted((v for v in victims if v.priority < priority and v.most > 0), key=lambda v: (v.priority, v.key))
    left, chosen = {name: amount for name, amount in missing.items() if amount > 0}, {}
    for victim in ranked:
        useful = [-(-amount // victim.request[name]) for name, amount in left.items() if victim.request.get(name)]
        count = min(victim.most, max(useful, default=0))
        if count:
            chosen[victim.key] = count
            left = {name: rest for name, rest in _less(left, victim.request, count).items() if rest > 0}
    return _without_needless(missing, {victim.key: victim for victim in ranked}, chosen)


def unmet(
    missing: Resources, victims: Mapping[tuple[str, str], Victim], chosen: Mapping[tuple[str, str], int]
) -> Resources:
    """Return what is still missing after the chosen replicas are gone."""
    left = dict(missing)
    for key, count in chosen.items():
        left = _less(left, victims[key].request, count)
    return {name: max(0, rest) for name, rest in left.items()}


def _without_needless(
    missing: Resources, victims: Mapping[tuple[str, str], Victim], chosen: dict[tuple[str, str], int]
) -> dict[tuple[str, str], int]:
    """Take back, the highest priority first, what does not change how much is missing."""
    goal = unmet(missing, victims, chosen)
    for key in sorted(chosen, key=lambda key: (-victims[key].priority, key)):
        while chosen[key] and unmet(missing, victims, {**chosen, key: chosen[key] - 1}) == goal:
            chosen[key] -= 1
    return {key: count for key, count in chosen.items() if count}


def _less(left: Resources, request: Resources, count: int) -> dict[str, int]:
    return {name: amount - count * request.get(name, 0) for name, amount in left.items()}


def yields_from(text: str | None) -> dict[str, Yield]:
    """Return the record of an annotation by cluster; {} without one, and for one that is malformed."""
    found = {}
    for cluster, entry in (parse_object(text or "") or {}).items():
        if isinstance(entry, dict) and type(entry.get("keeps")) is int and type(entry.get("count")) is int:
            found[cluster] = Yield(max(0, entry["keeps"]), max(0, entry["count"]), str(entry.get("to") or ""))
    return found


def yields_to_annotation(yields: Mapping[str, Yield]) -> str | None:
    """Return the annotation of a record; None removes it."""
    entries: dict[str, Any] = {
        cluster: {"keeps": entry.keeps, "count": entry.count, "to": entry.to} for cluster, entry in yields.items()
    }
    return orjson.dumps(entries, option=orjson.OPT_SORT_KEYS).decode() if entries else None
