"""Find the due rules of a CronFederatedHPA, and compute the status that records their times. Pure.

The status is the only memory: a rule is due when the time that it names has come. So a run that a restart delays is
made up for, once, and no run happens twice. A rule without a time in the status, because it is new, changed or was
suspended, starts with its next time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from federation.apimachinery import cron
from federation.apimachinery.clock import from_rfc3339, to_rfc3339


@dataclass(frozen=True, slots=True)
class Due:
    """A rule that is to run now, and the time that it was due at."""

    rule: Mapping[str, Any]
    at: datetime


def schedule_problem(rule: Mapping[str, Any]) -> tuple[str, str]:
    """Return the wrong field of a rule and what is wrong with it, ("", "") for a correct one."""
    try:
        _zone(rule)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return "timeZone", "unknown time zone; use a name such as Europe/Berlin"
    try:
        next_time(rule, datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC")))
    except ValueError as error:
        return "schedule", str(error)
    return "", ""


def next_time(rule: Mapping[str, Any], after: datetime) -> datetime:
    """Return the first time of the rule's schedule after a time; ValueError for a malformed one."""
    return cron.next_time(str(rule["schedule"]), after, _zone(rule))


def due_rules(spec: Mapping[str, Any], histories: Sequence[Mapping[str, Any]], now: datetime) -> list[Due]:
    """Return the rules that are to run now, in the order of the spec; of a rule's missed times only the last."""
    times = {entry["ruleName"]: entry.get("nextExecutionTime") for entry in histories}
    due = []
    for rule in spec["rules"]:
        planned = times.get(rule["name"])
        if rule.get("suspend") or not planned or schedule_problem(rule)[1]:
            continue
        at = from_rfc3339(planned)
        if at > now:
            continue
        # A schedule that was changed meanwhile no longer has the time.
        last = cron.last_time(str(rule["schedule"]), now, _zone(rule))
        due.append(Due(rule, max(at, last.astimezone(at.tzinfo))))
    return due


def next_histories(
    spec: Mapping[str, Any],
    histories: Sequence[Mapping[str, Any]],
    outcomes: Mapping[str, tuple[Due, Mapping[str, Any], str]],
    now: datetime,
) -> list[dict[str, Any]]:
    """Return `status.executionHistories`; `outcomes` are the runs by rule: what was applied, or the error."""
    known = {entry["ruleName"]: entry for entry in histories}
    planned: list[dict[str, Any]] = []
    for rule in spec["rules"]:
        before = known.get(rule["name"], {})
        entry: dict[str, Any] = {"ruleName": rule["name"]}
        if not rule.get("suspend") and not schedule_problem(rule)[1]:
            entry["nextExecutionTime"] = _planned(rule, before, now, is_run=rule["name"] in outcomes)
        succeeded = list(before.get("successfulExecutions") or ())
        failed = list(before.get("failedExecutions") or ())
        if rule["name"] in outcomes:
            due, applied, error = outcomes[rule["name"]]
            times = {"scheduleTime": to_rfc3339(due.at), "executionTime": to_rfc3339(now)}
            if error:
                failed.insert(0, {**times, "message": error})
            else:
                succeeded.insert(0, {**times, **applied})
        if kept := succeeded[: rule.get("successfulHistoryLimit", 3)]:
            entry["successfulExecutions"] = kept
        if kept := failed[: rule.get("failedHistoryLimit", 3)]:
            entry["failedExecutions"] = kept
        planned.append(entry)
    return planned


def _planned(rule: Mapping[str, Any], before: Mapping[str, Any], now: datetime, *, is_run: bool) -> str:
    """Return when the rule runs next: the time in the status while the schedule still has it, else the next one."""
    present = before.get("nextExecutionTime")
    following = next_time(rule, now)
    if present and not is_run:
        at = from_rfc3339(str(present))
        if at <= now or at == following:
            return str(present)
    return to_rfc3339(following)


def _zone(rule: Mapping[str, Any]) -> ZoneInfo:
    return ZoneInfo(str(rule.get("timeZone") or "UTC"))
