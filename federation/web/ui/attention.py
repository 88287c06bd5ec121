"""Needs attention: objects that are not placed, not delivered, stale or held; clusters and certificates in trouble."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS, PLACEMENT_HOLDS
from federation.apimachinery.errors import Forbidden
from federation.web import objectlist
from federation.web.ui.clustercards import concerns_of
from federation.web.ui.expiringcertificates import expiring
from federation.web.ui.holdscreen import consequence_of
from federation.web.ui.objectsscreen import watched_objects
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen

KINDS = (
    ("attention", "All"),
    ("not-placed", "Not placed"),
    ("not-delivered", "Not delivered"),
    ("stale", "Stale"),
    ("held", "Held"),
)
_CONCERNS_MAX = 50
"""Clusters to list; the fleet shows all."""


async def _load(page: Page) -> Mapping[str, Any]:
    state = page.query.get("state") or "attention"
    query = {key: page.query[key] for key in ("namespace", "continue") if page.query.get(key)}
    listed = await page.api.get(objectlist.PATH, **query, state=state, limit=str(PAGE_ROWS))
    clusters = (await page.get_optional(FEDERATED_CLUSTERS.path(), {"items": []}))["items"]
    holds = (await page.get_optional(PLACEMENT_HOLDS.path(), {"items": []}))["items"]
    try:
        certificates = expiring(await page.api.get_text("/metrics"), page.now)
    except Forbidden:
        certificates = []
    concerns = [concern for cluster in clusters for concern in concerns_of(cluster, page.now)]
    after = listed["metadata"].get("continue", "")
    return {
        "listed": listed,
        "state": state,
        "kinds": KINDS,
        "concerns": sorted(concerns, key=lambda concern: concern.cluster)[:_CONCERNS_MAX],
        "certificates": certificates,
        "concern_count": len(concerns),
        "holds": [
            (hold["metadata"]["name"], consequence_of(hold["spec"]).title)
            for hold in holds
            if not hold["spec"].get("approval")
        ],
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if page.query.get("continue") else "",
    }


def _watched(page: Page) -> Sequence[Collection]:
    return [*watched_objects(page), (PLACEMENT_HOLDS.path(), {})]


SCREEN = Screen("/ui/attention", "Needs attention", "attention.html", _load, _watched, pause_s=3.0)
