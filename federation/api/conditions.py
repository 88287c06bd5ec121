"""Status conditions: a list that is a map by `type`, with Kubernetes' rule for times.

`lastTransitionTime` moves only when `status` changes, so that "since when" stays true while a message is refreshed.
Pure: the caller brings `now`. A result that is the same list as the argument means that nothing has to be written.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from federation.base.clock import to_rfc3339

Condition = dict[str, Any]


def find(conditions: Sequence[Mapping[str, Any]] | None, type_: str) -> Mapping[str, Any] | None:
    """Return the condition of that type, None when there is none."""
    for condition in conditions or ():
        if condition.get("type") == type_:
            return condition
    return None


def is_true(conditions: Sequence[Mapping[str, Any]] | None, type_: str) -> bool:
    """Say whether the condition exists with status "True"."""
    condition = find(conditions, type_)
    return condition is not None and condition.get("status") == "True"


def set_condition(
    conditions: list[Condition] | None,
    *,
    type_: str,
    status: str,
    now: datetime,
    reason: str = "",
    message: str = "",
    observed_generation: int | None = None,
    time_fields: Sequence[str] = (),
) -> list[Condition]:
    """Return the list with this condition in it, at its old place or at the end; the same list when nothing changed.

    `status` is "True", "False" or "Unknown". `time_fields` names further times that the kind has (`lastUpdateTime`,
    `lastProbeTime`); they are set to `now` whenever the condition is written and do not by themselves cause a write.
    """
    existing = conditions if conditions is not None else []
    old = find(existing, type_)
    wanted: Condition = {"type": type_, "status": status, "reason": reason}
    if message:
        wanted["message"] = message
    if observed_generation is not None:
        wanted["observedGeneration"] = observed_generation
    if old is not None and _is_same(old, wanted):
        return existing
    stamp = to_rfc3339(now)
    is_transition = old is None or old.get("status") != status
    wanted["lastTransitionTime"] = stamp if is_transition or old is None else old.get("lastTransitionTime", stamp)
    wanted.update(dict.fromkeys(time_fields, stamp))
    if old is None:
        return [*existing, wanted]
    return [wanted if condition.get("type") == type_ else condition for condition in existing]


def _is_same(old: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(
        old.get(key, "" if key != "observedGeneration" else None)
        == wanted.get(key, "" if key != "observedGeneration" else None)
        for key in ("status", "reason", "message", "observedGeneration")
    )


def remove(conditions: list[Condition] | None, type_: str) -> list[Condition]:
    """Return the list without the condition of that type; the same list when there was none."""
    existing = conditions if conditions is not None else []
    if find(existing, type_) is None:
        return existing
    return [condition for condition in existing if condition.get("type") != type_]
