"""The place of an object in its queue, as the status of a JobQueue has it. Pure.

`features/queues` writes the status; `fedctl why`, `fedctl queue` and the web UI read it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339

CARBON = "carbon"
"""The measure of alternatives whose cost is grams of CO2e."""


def waiting_jobs(queue: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the first jobs that wait in a JobQueue, in their order."""
    return list((queue.get("status") or {}).get("waiting") or ())


def place_of(queues: Iterable[Mapping[str, Any]], kind: str, name: str, now: datetime) -> str:
    """Return the place of an object in one of the JobQueues of its namespace, "" if none lists it."""
    for queue in queues:
        for job in waiting_jobs(queue):
            if (job.get("kind"), job.get("name")) == (kind, name):
                title = f"position {job['position']} of JobQueue {queue['metadata']['name']}"
                return f"{title}; {job['waitsFor']}; {start_of(job, now)}"
    return ""


def alternatives_of(queues: Iterable[Mapping[str, Any]], kind: str, name: str) -> list[Mapping[str, Any]]:
    """Return the clusters that were compared for the deadline of an object that waits in one of the JobQueues."""
    for queue in queues:
        for job in waiting_jobs(queue):
            if (job.get("kind"), job.get("name")) == (kind, name):
                return list(job.get("alternatives") or ())
    return []


def describe_alternatives(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line for each cluster that was compared for a deadline, for people."""
    lines = []
    for each in found:
        name = f"{each['cluster']} (spot)" if each.get("isSpot") else str(each["cluster"])
        start = f"starts {each['startsAt']}, ends by {each['endsBy']}" if each.get("startsAt") else "start not known"
        amount, cost = each.get("cost"), "cost not known"
        if amount is not None:
            cost = f"emits {amount:.4g} g CO2e" if each.get("measure") == CARBON else f"costs {amount:.4g}"
        lines.append(f"{name}: {start}, {cost}, {'in time' if each.get('isMet') else 'too late'}")
    return lines


def start_of(job: Mapping[str, Any], now: datetime) -> str:
    """Return the estimated start of a job that waits, for people."""
    text = job.get("estimatedStartTime")
    if not text:
        return "its start is not known"
    minutes = round((from_rfc3339(str(text)) - now).total_seconds() / 60)
    if minutes < 1:
        return "expected to start now"
    hours, rest = divmod(minutes, 60)
    return f"expected to start in {hours} h {rest} min" if hours else f"expected to start in {minutes} min"
