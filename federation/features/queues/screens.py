"""Queues in the web UI: all of them, those of the fleet with their use, and one with the jobs that wait."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from federation.api.resources import CLUSTER_JOB_QUEUES, JOB_QUEUES
from federation.apimachinery.nameformats import path_segment
from federation.apimachinery.quantity import parse
from federation.features.queues.usagehistory import PATH
from federation.planning.waitingjobs import start_of, waiting_jobs
from federation.web.ui.linechart import draw_line
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen, read_lists

_FULL = 100


async def _load_all(page: Page) -> Mapping[str, Any]:
    query = {"continue": page.query["continue"]} if page.query.get("continue") else {}
    listed: Mapping[str, Any] = {"items": [], "metadata": {}}
    if not path_segment(_namespace(page)):  # no other text is a namespace, and it becomes a part of an address
        listed = await read_lists(page, JOB_QUEUES, _namespace(page), limit=str(PAGE_ROWS), **query)
    after = listed["metadata"].get("continue", "")
    fleet = await page.get_optional(CLUSTER_JOB_QUEUES.path(), {"items": []}, limit=str(PAGE_ROWS))
    past = await page.get_optional(PATH, {"queues": {}})
    return {
        "queues": listed["items"],
        "fleet": [
            {"name": (name := each["metadata"]["name"]), **to_fleet_row(each), **to_course(past["queues"].get(name))}
            for each in fleet["items"]
        ],
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if query else "",
    }


def to_fleet_row(queue: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the row of a ClusterJobQueue shows: its counts, and the use of each flavour and resource."""
    status = queue.get("status") or {}
    usage = [
        {
            "of": f"{line['flavor']}: {line['resource']}",
            "used": line["used"],
            "quota": line["nominalQuota"],
            "borrowed": line.get("borrowed"),
            "percent": _percent(line),
        }
        for line in status.get("usage") or ()
    ]
    return {
        "cohort": (queue.get("spec") or {}).get("cohort") or "",
        "pending": status.get("pending", 0),
        "admitted": status.get("admitted", 0),
        "message": status.get("message") or "",
        "usage": usage,
    }


def to_course(series: Mapping[str, Sequence[float | None]] | None) -> Mapping[str, Any]:
    """Return the line of the used quota over the last hours and its description. The top is a full quota or more."""
    used = [None if value is None else value * _FULL for value in (series or {}).get("used", ())]
    line = draw_line(used, max(_FULL, *(value or 0.0 for value in used))) if used else None
    if line is None or line.last is None or line.least is None or line.most is None:
        return {"line": None, "words": ""}
    words = f"used in the last 6 h: now {line.last:.0f} %, from {line.least:.0f} to {line.most:.0f} %"
    return {"line": line, "words": words}


def _percent(line: Mapping[str, Any]) -> int:
    quota = parse(line["nominalQuota"]).nanos
    return min(_FULL, parse(line["used"]).nanos * _FULL // quota) if quota else 0


def _namespace(page: Page) -> str:
    return page.query.get("namespace", "").strip()


async def _load_one(page: Page) -> Mapping[str, Any]:
    queue = await page.api.get(JOB_QUEUES.path(page.parts["namespace"], page.parts["name"]))
    status, jobs = queue.get("status") or {}, waiting_jobs(queue)
    return {
        "queue": queue,
        "state": status,
        "jobs": [{**job, "start": start_of(job, page.now)} for job in jobs],
        "more": int(status.get("pending") or 0) - len(jobs),
    }


def _watched_all(page: Page) -> Sequence[Collection]:
    namespace = _namespace(page)
    return [] if path_segment(namespace) else [(JOB_QUEUES.path(namespace), {})]


def _watched_one(page: Page) -> Sequence[Collection]:
    parts = page.parts
    return [(JOB_QUEUES.path(parts["namespace"]), {"fieldSelector": f"metadata.name={parts['name']}"})]


_FOLDER = Path(__file__).parent / "templates"
SCREENS = (
    Screen("/ui/queues", "Queues", "queues.html", _load_all, _watched_all, key="q", templates=_FOLDER),
    Screen(
        "/ui/queues/{namespace}/{name}",
        "Queue",
        "queue.html",
        _load_one,
        _watched_one,
        is_listed=False,
        templates=_FOLDER,
    ),
)
