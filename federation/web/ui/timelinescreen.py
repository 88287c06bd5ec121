"""The timeline: moves between clusters, failures, and clusters that were lost, over the last hours.

Moves and failures are decisions of the journal, as far as the user may read them; what happened to clusters is in the
memory of the control plane, from its start on.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.usedtime import in_thread
from federation.web import decisions, history
from federation.web.ui.decisionline import Entry, to_entry
from federation.web.ui.decisionsscreen import watched_decisions
from federation.web.ui.lanes import lanes_of
from federation.web.ui.overview import SPANS
from federation.web.ui.screen import Collection, Page, Screen

PATH = "/ui/timeline"
_RECORDS_MAX = 300
"""Decisions to read; explanations about many clusters are large."""
_ROWS_MAX = 20
_FILTERS = ("namespace", "kind", "name", "cluster")
_WORDS = {
    "joined": ("good", "Joined"), "left": ("unknown", "Left"), "lost": ("bad", "Does not answer"),
    "back": ("good", "Answers again"),
}  # fmt: skip


async def _load(page: Page) -> Mapping[str, Any]:
    hours = page.query.get("hours", "") if page.query.get("hours", "") in dict(SPANS) else "1"
    end = page.now
    start = end - timedelta(hours=float(hours))
    query = {key: page.query[key] for key in _FILTERS if page.query.get(key)}
    cluster = query.get("cluster", "")
    listed = await page.api.get(
        decisions.DECISIONS_PATH, **query, since=to_rfc3339(start), part="moves", limit=str(_RECORDS_MAX)
    )
    past = await page.get_optional(history.PATH, {"incidents": []}, hours=hours, points="1")
    incidents = [each for each in past["incidents"] if cluster in ("", each["cluster"])]
    records = listed["items"]
    if listed["metadata"].get("continue") and records:
        start = max(start, datetime.fromisoformat(records[-1]["at"]))
    lanes, more = await in_thread(partial(lanes_of, incidents, records, start, end))
    if cluster:
        lanes, more = [lane for lane in lanes if lane.cluster == cluster], 0
    rows = await in_thread(partial(rows_of, incidents, records))
    return {
        "hours": hours,
        "spans": [(value, words, page.link(hours=value)) for value, words in SPANS],
        "start": to_rfc3339(start),
        "end": to_rfc3339(end),
        "is_cut": bool(listed["metadata"].get("continue")),
        "lanes": lanes,
        "lanes_more": more,
        "rows": rows[:_ROWS_MAX],
        "rows_more": max(0, len(rows) - _ROWS_MAX),
        "words": _WORDS,
        "hidden_resources": listed["hiddenResources"],
    }


def rows_of(
    incidents: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Mapping[str, Any] | None, Entry | None]]:
    """Return time, incident and decision, one of which is None: what moved, what failed, and what was lost.

    The newest first. Decisions that changed nothing and placed something are left out.
    """
    rows: list[tuple[str, Mapping[str, Any] | None, Entry | None]] = [
        (str(incident["at"]), incident, None) for incident in incidents
    ]
    for record in records:
        entry = to_entry(record)
        if entry.moves or entry.tone in ("bad", "warn"):
            rows.append((entry.at, None, entry))
    return sorted(rows, key=lambda row: row[0][:19], reverse=True)


def _watched(page: Page) -> Sequence[Collection]:
    return watched_decisions(page)


SCREEN = Screen(
    PATH,
    "Timeline",
    "timeline.html",
    _load,
    _watched,
    is_listed=False,
    within="/ui/decisions",
    pause_s=5.0,
    poll_s=30.0,
)
