"""The map: clusters by region, and the flows of moves between them in the last hours.

It needs permission to list FederatedClusters. Moves are decisions of the journal, as far as the user may read them.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.usedtime import in_thread
from federation.web import decisions
from federation.web.ui.clustercards import ClusterCard, by_region, to_card
from federation.web.ui.clusterlist import read_clusters
from federation.web.ui.decisionsscreen import watched_decisions
from federation.web.ui.exports import Cell, Table
from federation.web.ui.fleetmap import draw, places_of
from federation.web.ui.flows import Flow, flows_between
from federation.web.ui.overview import SPANS
from federation.web.ui.screen import Collection, Page, Screen

PATH = "/ui/map"
_RECORDS_MAX = 300
_ROWS_MAX = 20
_FILTERS = ("namespace", "kind", "name")
_NONE: Mapping[str, Any] = {"items": [], "metadata": {}, "hiddenResources": []}


async def _read(page: Page) -> tuple[list[ClusterCard], list[Flow], Mapping[str, Any], str]:
    """Return cards, flows, what the journal answered, and the time span in hours."""
    hours = page.query.get("hours", "") if page.query.get("hours", "") in dict(SPANS) else "1"
    start = page.now - timedelta(hours=float(hours))
    cards = [to_card(cluster) for cluster in await read_clusters(page)]
    query = {key: page.query[key] for key in _FILTERS if page.query.get(key)}
    listed = await page.get_optional(
        decisions.DECISIONS_PATH, _NONE, **query, since=to_rfc3339(start), part="moves", limit=str(_RECORDS_MAX)
    )
    home = {card.name: card.region for card in cards}
    flows = await in_thread(partial(flows_between, listed["items"], home))
    return cards, flows, listed, hours


async def _load(page: Page) -> Mapping[str, Any]:
    cards, flows, listed, hours = await _read(page)
    regions = [name for name, _ in by_region(cards)]
    region = page.query.get("region", "")
    region = region if region in regions else ""
    picture = draw(places_of(cards, flows, region), flows)
    if region:
        inside = {card.name for card in cards if card.region == region}
        flows = [flow for flow in flows if flow.source in inside or flow.target in inside]
    is_cut = bool(listed["metadata"].get("continue"))
    return {
        "map": picture,
        "count": len(cards),
        "region": region,
        "regions": [("", "All regions"), *((name, name) for name in regions)],
        "hours": hours,
        "spans": [(value, words, page.link(hours=value)) for value, words in SPANS],
        "flows": flows[:_ROWS_MAX],
        "flows_more": max(0, len(flows) - _ROWS_MAX),
        "since": listed["items"][-1]["at"] if is_cut and listed["items"] else "",
        "hidden_resources": listed["hiddenResources"],
    }


async def _table(page: Page) -> Table:
    _, flows, listed, _ = await _read(page)
    rows: list[list[Cell]] = [
        [flow.source, flow.target, flow.replicas, flow.objects, flow.at, flow.name] for flow in flows
    ]
    columns = ("from", "to", "replicas", "moves", "last", "lastObject")
    return Table("flows", columns, rows, not listed["metadata"].get("continue"))


def _watched(page: Page) -> Sequence[Collection]:
    return [*watched_decisions(page), (FEDERATED_CLUSTERS.path(), {})]


SCREEN = Screen(
    PATH,
    "Map",
    "map.html",
    _load,
    _watched,
    is_listed=False,
    within="/ui/fleet",
    pause_s=5.0,
    poll_s=60.0,
    table=_table,
)
