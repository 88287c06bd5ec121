"""The taints of a FederatedCluster that follow its health, as the node life cycle controller of Kubernetes sets them.

A cluster that is lost has a NoSchedule and a NoExecute taint of the same key, both with `timeAdded`. One that is not
ready for a reason of ours has the NoSchedule taint only: it answers, and its pods run (`probes.py`). Pure:
`controllers/clustertaints` writes the plan. Taints with other keys are the users' and stay.

Reference: docs/reference/clusters.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from federation.api import names
from federation.apimachinery.clock import from_rfc3339, is_ahead, to_rfc3339

Taint = Mapping[str, Any]
_EFFECTS = ("NoSchedule", "NoExecute")
HEALTH_TAINT_KEYS = {"False": names.TAINT_NOT_READY, "Unknown": names.TAINT_UNREACHABLE}
"""The key by the status of the condition Ready; a ready cluster has neither."""


def plan_taints(
    taints: Sequence[Taint] | None, ready: str, now: datetime, *, is_lost: bool = True
) -> list[Taint] | None:
    """Return the complete next list of taints for a status of the condition Ready; None if nothing changes.

    `is_lost`: whether its reason is evidence against the cluster.

    A cluster that changes from not ready to unreachable, or back, keeps the `timeAdded` of the taint that is replaced:
    it has not been ready since then, and tolerations do not start again. A taint of anybody with a `timeAdded` in the
    future is of a machine with a wrong clock; its time is `now` from here on, or tolerations would not end.
    """
    if ready not in HEALTH_TAINT_KEYS and ready != "True":
        return None
    stored = list(taints or ())
    present = [_with_past_time(taint, now) for taint in stored]
    since = _earliest_times(present)
    kept: list[Taint] = []
    wanted = HEALTH_TAINT_KEYS.get(ready)
    effects = _EFFECTS if is_lost else _EFFECTS[:1]
    missing = set(effects if ready in HEALTH_TAINT_KEYS else ())
    for taint in present:
        if taint.get("key") not in names.HEALTH_TAINTS:
            kept.append(taint)
        elif taint.get("key") == wanted and taint.get("effect") in missing and taint.get("timeAdded"):
            kept.append(taint)
            missing.discard(taint["effect"])
    times = {effect: since.get(effect) or to_rfc3339(now) for effect in _EFFECTS if effect in missing}
    kept += [{"key": HEALTH_TAINT_KEYS[ready], "effect": effect, "timeAdded": added} for effect, added in times.items()]
    return kept if kept != stored else None


def postpone(taints: Iterable[Taint], unheard_s: float, now: datetime) -> list[Taint]:
    """Return the taints with later times of the NoExecute health taints: for `unheard_s` no answer could be heard.

    Tolerations and grace times count from these times, so they count only time in which the cluster could answer.
    """
    return [
        {**taint, "timeAdded": _later(str(taint["timeAdded"]), unheard_s, now)}
        if _is_ours(taint) and taint.get("effect") == "NoExecute" and taint.get("timeAdded")
        else taint
        for taint in taints
    ]


def _later(added: str, by_s: float, now: datetime) -> str:
    try:
        at = from_rfc3339(added)
    except ValueError:
        return added
    return to_rfc3339(at + timedelta(seconds=max(0.0, min(by_s, (now - at).total_seconds()))))


def describe_changes(before: Iterable[Taint], after: Iterable[Taint]) -> tuple[str, str]:
    """Return the added and the removed health taints as text, "" for none."""
    old, new = ([describe_taint(taint) for taint in taints if _is_ours(taint)] for taints in (before, after))
    added, removed = (text for text in new if text not in old), (text for text in old if text not in new)
    return ", ".join(added), ", ".join(removed)


def describe_taint(taint: Taint) -> str:
    """Return a taint as kubectl shows it: `key=value:Effect`, or `key:Effect` without a value."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def _earliest_times(taints: Iterable[Taint]) -> dict[str, str]:
    """Return the earliest `timeAdded` of the health taints by effect."""
    found: dict[str, str] = {}
    for taint in taints:
        added = taint.get("timeAdded")
        if _is_ours(taint) and isinstance(added, str) and added:
            effect = str(taint.get("effect"))
            found[effect] = min(found.get(effect, added), added)
    return found


def _with_past_time(taint: Taint, now: datetime) -> Taint:
    added = taint.get("timeAdded")
    try:
        is_wrong = isinstance(added, str) and is_ahead(from_rfc3339(added), now)
    except ValueError:
        is_wrong = False
    return {**taint, "timeAdded": to_rfc3339(now)} if is_wrong else taint


def _is_ours(taint: Taint) -> bool:
    return taint.get("key") in names.HEALTH_TAINTS
