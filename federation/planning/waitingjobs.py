"""The place of an object in its queue, as the status of a JobQueue has it. Pure.

`features/queues` writes the status; `fedctl why`, `fedctl queue` and the web UI read it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339


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
