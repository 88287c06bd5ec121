"""Shared parts of all merge functions: their context, sums and condition times."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from federation.apimachinery.clock import CLOCKS_DIFFER_S, to_rfc3339
from federation.apimachinery.resources import Object

Members = Mapping[str, Mapping[str, Any]]
"""Member objects by cluster."""


@dataclass(frozen=True, slots=True)
class Context:
    """The dispatch state of one object.

    `is_observed`: all clusters have the source's current generation, and their controllers have observed it. `placed`:
    the clusters of the placement; only their member objects count. `unscheduled_since`: since when no cluster is found
    for the object, None for one that has clusters.
    """

    now: datetime
    is_observed: bool = False
    placed: frozenset[str] = field(default_factory=frozenset)
    stale: frozenset[str] = field(default_factory=frozenset)
    """The clusters that do not answer; their member objects have the last known status."""
    unscheduled_since: datetime | None = None
    rollout_failure: str = ""
    """Why the rollout in waves stopped or rolled back, "" if it did not."""
    unscheduled: str = ""
    """Why no cluster is found, for people."""

    @property
    def is_nowhere(self) -> bool:
        """Whether no cluster has the object because none is found for it, such as one that waits in a queue.

        Its status must not show what ran before: nothing runs.
        """
        return not self.placed and self.unscheduled_since is not None

    def is_unknown(self, members: Members) -> bool:
        """Return whether nothing is known of the object: no member has it, and a cluster may be on its way."""
        return not members and not self.is_nowhere

    @property
    def nowhere(self) -> str:
        """Say why no cluster has the object."""
        return f"no cluster has it: {self.unscheduled}" if self.unscheduled else "no cluster has it"


Merge = Callable[[Mapping[str, Any], Members, Context], Object | None]


def status_of(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object's status, empty when there is none."""
    return obj.get("status") or {}


def total(members: Members, field_name: str) -> int:
    """Return the sum of a status' integer field over all member objects."""
    return sum(int(status_of(member).get(field_name) or 0) for member in members.values())


def sums(members: Members, fields: tuple[str, ...]) -> dict[str, int]:
    """Return the sums of the fields, leaving out zeros as Kubernetes does."""
    found = {name: total(members, name) for name in fields}
    return {name: amount for name, amount in found.items() if amount}


def observed_generation(source: Mapping[str, Any], context: Context) -> int | None:
    """Return the source's generation if the members have observed it, else the published one; None if none has it."""
    if context.is_nowhere:
        return None
    if context.is_observed:
        generation = (source.get("metadata") or {}).get("generation")
        return int(generation) if generation is not None else None
    previous = status_of(source).get("observedGeneration")
    return int(previous) if previous is not None else None


def keep_condition_times(
    previous: list[dict[str, Any]] | None, wanted: list[dict[str, Any]], now: datetime, *, update_field: str = ""
) -> list[dict[str, Any]]:
    """Return the conditions with their times: `now` where status or message changed, else the previous ones.

    `update_field` names the kind's second time (lastUpdateTime, lastProbeTime), "" when it has none.
    """
    before = {condition.get("type"): condition for condition in previous or ()}
    stamp, latest = to_rfc3339(now), to_rfc3339(now + timedelta(seconds=CLOCKS_DIFFER_S))
    result = []
    for condition in wanted:
        old = before.get(condition["type"], {})
        # A later time was written by a process whose clock was ahead.
        is_same_status = old.get("status") == condition["status"] and str(old.get("lastTransitionTime", "")) <= latest
        is_same = is_same_status and all(old.get(k, "") == condition.get(k, "") for k in ("reason", "message"))
        entry = dict(condition)
        entry["lastTransitionTime"] = (old.get("lastTransitionTime") if is_same_status else None) or stamp
        if update_field:
            entry[update_field] = (old.get(update_field) if is_same else None) or stamp
        result.append(entry)
    return result
