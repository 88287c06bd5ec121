"""Search over what the user may see: objects by name, clusters by name, label and taint, namespaces, and screens."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.naturalorder import natural_key
from federation.web import objectlist
from federation.web.ui.clustercards import matches, to_card
from federation.web.ui.clusterlist import read_visible_clusters
from federation.web.ui.namespacesscreen import read_namespaces
from federation.web.ui.screen import Collection, Page, Screen

_HITS_MAX = 20
_TEXT_LENGTH_MAX = 253
KEYS = (
    ("/", "search"),
    ("g h", "overview"),
    ("g o", "objects"),
    ("g f", "fleet"),
    ("g n", "needs attention"),
    ("g d", "decisions"),
    ("g p", "plan"),
    ("g r", "rollouts"),
    ("g c", "capacity"),
    ("g y", "policies"),
    ("j, k", "next and previous entry of a list"),
    ("?", "this help"),
)
"""Keys and what they do; `static/ui.js` has the same."""
_NOTHING: Mapping[str, Any] = {"items": [], "counts": {}}


async def _load(page: Page) -> Mapping[str, Any]:
    text = page.query.get("q", "").strip()[:_TEXT_LENGTH_MAX]
    if not text:
        return {"text": "", "keys": KEYS}
    objects, clusters, namespaces = await asyncio.gather(
        page.get_optional(objectlist.PATH, _NOTHING, name=text, sort="name", limit=str(_HITS_MAX)),
        read_visible_clusters(page),
        read_namespaces(page),
    )
    cards = [to_card(cluster) for cluster in clusters or ()]
    found = sorted((card for card in cards if matches(card, text, "", "")), key=lambda card: natural_key(card.name))
    named = sorted((name for each in namespaces if text in (name := each["metadata"]["name"])), key=natural_key)
    return {
        "text": text,
        "keys": KEYS,
        "objects": objects["items"],
        "objects_count": objects["counts"].get("all", 0),
        "clusters": found[:_HITS_MAX],
        "clusters_count": len(found),
        "namespaces": named[:_HITS_MAX],
        "namespaces_count": len(named),
    }


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return []


SCREEN = Screen("/ui/search", "Search", "search.html", _load, _watched, is_listed=False)
