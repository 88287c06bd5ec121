"""Status conditions: a list that is a map by `type`, with Kubernetes' rule for times.

`lastTransitionTime` changes only with `status`, not with a message. Pure: the caller brings `now`. A result that is the
same list as the argument means that no write is needed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import to_rfc3339

Condition = dict[str, Any]


def find(conditions: Sequence[Mapping[str, Any]] | None, type_: str) -> Mapping[str, Any] | None:
    """Return the condition of that type, None when there is none."""
    for condition in conditions or ():
        if condition.get("type") == type_:
            return condition
    return None


def is_true(conditions: Sequence[Mapping[str, Any]] | None, type_: str) -> bool:
    """Return True if the condition exists with status "True"."""
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
    time_fields: Sequence[str] = (),
) -> list[Condition]:
    """Return the list with this condition at its old position or at the end; the same list when nothing changed.

    `status` is "True", "False" or "Unknown". `time_fields` are further times of the kind (`lastUpdateTime`,
    `lastProbeTime`); every write sets them to `now`, and they alone cause no write.
    """
    existing = conditions if conditions is not None else []
    old = find(existing, type_)
    wanted: Condition = {"type": type_, "status": status, "reason": reason}
    if message:
        wanted["message"] = message
    if old is not None and _is_equal(old, wanted):
        return existing
    stamp = to_rfc3339(now)
    is_transition = old is None or old.get("status") != status
    wanted["lastTransitionTime"] = stamp if is_transition or old is None else old.get("lastTransitionTime", stamp)
    wanted.update(dict.fromkeys(time_fields, stamp))
    if old is None:
        return [*existing, wanted]
    return [wanted if condition.get("type") == type_ else condition for condition in existing]


def _is_equal(old: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(old.get(key, "") == wanted.get(key, "") for key in ("status", "reason", "message"))


def remove(conditions: list[Condition] | None, type_: str) -> list[Condition]:
    """Return the list without the condition of that type; the same list when there was none."""
    existing = conditions if conditions is not None else []
    if find(existing, type_) is None:
        return existing
    return [condition for condition in existing if condition.get("type") != type_]
