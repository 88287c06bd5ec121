"""The overview: what the fleet and its workloads are like now, how that changed, and what needs somebody.

Each part shows what the user may read and is left out otherwise. The lines come from the memory of the control plane
(`federation/runtime/fleethistory.py`), so they begin with its start.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.planning.clusters.clustershare import share_of
from federation.web import decisions, history, objectlist
from federation.web.ui.attention import read_entries
from federation.web.ui.clustercards import ClusterCard, by_region, to_card
from federation.web.ui.clusterlist import read_visible_clusters
from federation.web.ui.decisionline import Entry, to_entry
from federation.web.ui.linechart import Column, Layer, draw_columns, stack
from federation.web.ui.objectsscreen import watched_objects
from federation.web.ui.screen import Collection, Page, Screen
from federation.web.ui.tiles import Series, to_tiles

PATH = "/ui/overview"
SPANS = (("0.25", "15 min"), ("1", "1 h"), ("3", "3 h"), ("6", "6 h"))
_POINTS = 120
_ENTRIES = 6
_DECISIONS, _DECISIONS_READ = 8, 24
"""Decisions that are shown, of those that are read: explanations about many clusters are large."""
_SQUARES_MAX = 300
"""Clusters in the picture of the regions."""
_NOTHING: Mapping[str, Any] = {"items": []}
_STATES = (
    ("objectsDelivered", "Delivered"),
    ("objectsUnderway", "On the way"),
    ("objectsSilent", "Last known state"),
    ("objectsFailing", "Not placed or not delivered"),
)


@dataclass(frozen=True, slots=True)
class Course:
    """The charts over time: objects by state, and moves and failures per step."""

    layers: Sequence[Layer]
    moves: Sequence[Column]
    failures: Sequence[Column]
    most: int
    moved: int
    failed: int


async def _load(page: Page) -> Mapping[str, Any]:
    asked = page.query.get("hours", "")
    hours = asked if asked in dict(SPANS) else ""
    clusters, listed, past, decided = await asyncio.gather(
        read_visible_clusters(page),
        page.api.get(objectlist.PATH, limit="1"),
        page.get_optional(history.PATH, None, hours=hours or SPANS[-1][0], points=str(_POINTS)),
        page.get_optional(decisions.DECISIONS_PATH, _NOTHING, part="moves", limit=str(_DECISIONS_READ)),
    )
    if past is not None and not hours:
        hours = span_for(past["ageSeconds"])
        past = await page.api.get(history.PATH, hours=hours, points=str(_POINTS))
    series: Series = past["series"] if past else {}
    words = dict(SPANS).get(hours, "")
    cards = [to_card(cluster) for cluster in clusters or ()]
    shares = [share_of(cluster) for cluster in clusters or ()]
    entries = await read_entries(page, listed["causes"], clusters or (), with_pods=False)
    regions, hidden = squares_of(cards)
    return {
        "tiles": to_tiles(cards, shares, listed, len(entries), series, words),
        "course": to_course(series),
        "span": words,
        "spans": [(value, text, page.link(hours=value)) for value, text in SPANS],
        "hours": hours,
        "regions": regions,
        "squares_more": hidden,
        "clusters": len(cards),
        "entries": entries[:_ENTRIES],
        "entries_more": max(0, len(entries) - _ENTRIES),
        "decisions": notable(decided["items"]),
        "listed": listed,
        "may_see_clusters": clusters is not None,
    }


def notable(records: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Return the newest decisions that changed or refused something; the newest of all if none did."""
    entries = [to_entry(record) for record in records]
    found = [entry for entry in entries if entry.moves or entry.tone in ("bad", "warn")]
    return (found or entries)[:_DECISIONS]


def span_for(age_s: float) -> str:
    """Return the shortest span that shows everything that is known."""
    return next((value for value, _ in SPANS if float(value) * 3600 >= age_s), SPANS[-1][0])


def squares_of(cards: Sequence[ClusterCard]) -> tuple[list[tuple[str, list[ClusterCard]]], int]:
    """Return the clusters of the picture by region, those in trouble first, and how many it leaves out."""
    ordered = sorted(cards, key=lambda card: card.health == "ready")
    return by_region(ordered[:_SQUARES_MAX]), max(0, len(ordered) - _SQUARES_MAX)


def to_course(series: Series) -> Course | None:
    """Return the charts about objects, None for a user who may not see series about them."""
    if "moves" not in series:
        return None
    moves, failures = series["moves"], series["failures"]
    most = max((value or 0 for values in (moves, failures) for value in values), default=0)
    return Course(
        stack({title: series[name] for name, title in _STATES}),
        draw_columns(moves, most),
        draw_columns(failures, most),
        int(most),
        int(sum(value or 0 for value in moves)),
        int(sum(value or 0 for value in failures)),
    )


def _watched(page: Page) -> Sequence[Collection]:
    return watched_objects(page)


SCREEN = Screen(PATH, "Overview", "overview.html", _load, _watched, pause_s=5.0, poll_s=30.0, key="h")
