"""Namespaces: how many federated objects each has, in how many clusters, and how many of them need attention."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import Forbidden
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.resources import NAMESPACES
from federation.web import objectlist, ownnamespaces
from federation.web.ui.exports import Table
from federation.web.ui.screen import Collection, Page, Screen

PATH = "/ui/namespaces"
_READ_MAX = "5000"
_ROWS = 100
_SORTS = ("name", "objects", "attention", "clusters")
_COLUMNS = ("name", "objects", "attention", "clusters", "phase", "created")
_NONE = {"objects": 0, "attention": 0, "clusters": 0}


async def read_namespaces(page: Page) -> list[Mapping[str, Any]]:
    """Return the namespaces that the user may list, or else those in which he has a role."""
    try:
        return list((await page.api.get(NAMESPACES.path(), limit=_READ_MAX))["items"])
    except Forbidden:
        own = [str(each["name"]) for each in (await page.api.get(ownnamespaces.PATH))["items"]]
    return list(
        await asyncio.gather(
            *(page.get_optional(NAMESPACES.path("", name), {"metadata": {"name": name}}) for name in own)
        )
    )


async def read_rows(page: Page) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Return the namespaces that pass the filter, in order, and the list of objects that was counted."""
    listed = await page.api.get(objectlist.PATH, countBy="namespace", limit="1")
    text, counts = page.query.get("name", ""), listed["countsByNamespace"]
    rows = [
        {
            "name": each["metadata"]["name"],
            **counts.get(each["metadata"]["name"], _NONE),
            "phase": (each.get("status") or {}).get("phase", ""),
            "created": each["metadata"].get("creationTimestamp", ""),
        }
        for each in await read_namespaces(page)
        if text in each["metadata"]["name"]
    ]
    return sort_rows(rows, page.query.get("sort", "")), listed


def sort_rows(rows: Sequence[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    """Return the rows in the order of a column, turned around by a `-`."""
    usual, key = sorted(rows, key=lambda row: natural_key(row["name"])), sort.removeprefix("-")
    if key not in _SORTS:
        return usual
    return sorted(
        usual, key=lambda row: natural_key(row["name"]) if key == "name" else row[key], reverse=sort.startswith("-")
    )


async def _load(page: Page) -> Mapping[str, Any]:
    rows, listed = await read_rows(page)
    text = page.query.get("from", "")
    start = int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0
    return {
        "rows": rows[start : start + _ROWS],
        "count": len(rows),
        "hidden_resources": listed["hiddenResources"],
        "first": page.link(**{"from": ""}) if start else "",
        "next": page.link(**{"from": str(start + _ROWS)}) if start + _ROWS < len(rows) else "",
    }


async def _table(page: Page) -> Table:
    rows, _ = await read_rows(page)
    return Table("namespaces", _COLUMNS, [[row[column] for column in _COLUMNS] for row in rows])


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return [(NAMESPACES.path(), {})]


SCREEN = Screen(
    PATH,
    "Namespaces",
    "namespaces.html",
    _load,
    _watched,
    is_listed=False,
    within="/ui/objects",
    pause_s=5.0,
    poll_s=30.0,
    table=_table,
)
