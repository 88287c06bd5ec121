"""Objects: a filtered list in pages of everything that is federated and that the user may list."""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS
from federation.apimachinery.naturalorder import natural_key
from federation.web import objectlist
from federation.web.ui import actionscreen
from federation.web.ui.exports import Table
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen, read_all

_FILTERS = ("namespace", "kind", "name", "cluster", "state", "cause", "heldBy", "sort")
STATES = (
    ("", "Any state"),
    ("applied", "Delivered"),
    ("silent", "Last known state"),
    ("propagating", "On its way"),
    ("pending", "Being decided"),
    ("failing", "Not delivered"),
    ("not-ready", "Not ready"),
    ("unplaced", "Not placed"),
    ("unselected", "No policy"),
    ("deleting", "Being deleted"),
    ("attention", "Needs attention"),
)


async def _load(page: Page) -> Mapping[str, Any]:
    query = {key: page.query[key] for key in (*_FILTERS, "continue") if page.query.get(key)}
    listed = await page.api.get(objectlist.PATH, **query, limit=str(PAGE_ROWS))
    after = listed["metadata"].get("continue", "")
    return {
        "done": actionscreen.done_by(page),
        "clusters": sorted({cluster for item in listed["items"] for cluster in item["clusters"]}, key=natural_key),
        "listed": listed,
        "states": STATES,
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if page.query.get("continue") else "",
    }


async def _table(page: Page) -> Table:
    query = {key: page.query[key] for key in _FILTERS if page.query.get(key)}
    items, is_complete = await read_all(page, objectlist.PATH, query)
    return to_table(items, is_complete=is_complete)


def to_table(items: Sequence[Mapping[str, Any]], *, is_complete: bool = True) -> Table:
    """Return objects as the rows of a file."""
    fields = ("group", "kind", "namespace", "name", "stage", "wanted", "ready", "clusters")
    rows = [
        [*(item[field] for field in fields), "; ".join(problem["text"] for problem in item["problems"])]
        for item in items
    ]
    return Table("objects", (*fields, "problems"), rows, is_complete)


def watched_objects(page: Page) -> Sequence[Collection]:
    """Return what makes a list of objects stale, for users who may watch it."""
    namespace = page.query.get("namespace", "")
    return [(FEDERATED_OBJECTS.path(namespace), {}), (FEDERATED_CLUSTERS.path(), {})]


SCREEN = Screen("/ui/objects", "Objects", "objects.html", _load, watched_objects, pause_s=3.0, table=_table)
