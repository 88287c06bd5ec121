"""What every kind's merge needs besides the copies: the time, and whether the members have seen the newest spec."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from federation.api.resources import Object
from federation.base.clock import to_rfc3339

Members = Mapping[str, Mapping[str, Any]]
"""The copies by cluster name."""


@dataclass(frozen=True, slots=True)
class Context:
    """Facts about one object's way to its clusters.

    `is_observed`: the source's newest generation is what all clusters hold, and their controllers have seen it.
    `placed`: the clusters that should have a copy; a copy elsewhere is on its way out and still counts in sums.
    """

    now: datetime
    is_observed: bool = False
    placed: frozenset[str] = field(default_factory=frozenset)


Merge = Callable[[Mapping[str, Any], Members, Context], Object | None]


def status_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object's status, empty when there is none."""
    return obj.get("status") or {}


def total(members: Members, field_name: str) -> int:
    """Return the sum of a status' integer field over all copies."""
    return sum(int(status_of(member).get(field_name) or 0) for member in members.values())


def sums(members: Members, fields: tuple[str, ...]) -> dict[str, int]:
    """Return the sums of the fields, leaving out zeros as Kubernetes does."""
    found = {name: total(members, name) for name in fields}
    return {name: amount for name, amount in found.items() if amount}


def observed_generation(source: Mapping[str, Any], context: Context) -> int | None:
    """Return the source's generation when the members have seen it, else the one that was published before."""
    if context.is_observed:
        generation = (source.get("metadata") or {}).get("generation")
        return int(generation) if generation is not None else None
    previous = status_of(source).get("observedGeneration")
    return int(previous) if previous is not None else None


def keep_condition_times(
    previous: list[dict[str, Any]] | None, wanted: list[dict[str, Any]], now: datetime, *, update_field: str = ""
) -> list[dict[str, Any]]:
    """Return the conditions with their times: kept where nothing changed, `now` where status or text did.

    `update_field` names the kind's second time (lastUpdateTime, lastProbeTime), "" when it has none.
    """
    before = {condition.get("type"): condition for condition in previous or ()}
    stamp = to_rfc3339(now)
    result = []
    for condition in wanted:
        old = before.get(condition["type"], {})
        is_same_status = old.get("status") == condition["status"]
        is_same = is_same_status and all(old.get(k, "") == condition.get(k, "") for k in ("reason", "message"))
        entry = dict(condition)
        entry["lastTransitionTime"] = (old.get("lastTransitionTime") if is_same_status else None) or stamp
        if update_field:
            entry[update_field] = (old.get(update_field) if is_same else None) or stamp
        result.append(entry)
    return result
