"""Capacity: the free room of clusters, how many pods fit, and which clusters can be lost; as a table and a picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.amounts import to_amount
from federation.apimachinery.errors import BadRequest
from federation.web import clusterheadroom
from federation.web.ui.exports import Table
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen, read_all

_FIELDS = ("cpu", "memory", "name", "without", "continue")
_WIDTH = 100.0
"""The longest bar, in units of its picture, which is stretched to the width of its place."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One cluster in the picture: segments are (x, width, tone); `text` says the same in words."""

    cluster: str
    segments: tuple[tuple[float, float, str], ...]
    total: int
    text: str


def to_bars(items: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """Return the bars of the picture: replicas that fit elsewhere, stay, or find no room. The longest is full width."""
    longest = max((item["loss"]["replicas"] for item in items), default=0)
    scale = _WIDTH / longest if longest else 0.0
    bars = []
    for item in items:
        loss = item["loss"]
        fitting = loss["replicas"] - loss["homeless"] - loss["staying"]
        x, segments = 0.0, []
        for count, tone in ((fitting, "fits"), (loss["staying"], "stays"), (loss["homeless"], "homeless")):
            if count:
                segments.append((round(x, 2), round(count * scale, 2), tone))
                x += count * scale
        bars.append(
            Bar(item["cluster"], tuple(segments), loss["replicas"], f"{item['cluster']}: {verdict_of(item)[1]}")
        )
    return bars


def verdict_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return tone and words about the loss of a cluster."""
    loss = item["loss"]
    if not loss["replicas"]:
        return "unknown", "Nothing divided runs here"
    if loss["homeless"]:
        return "bad", f"{loss['homeless']} of {loss['replicas']} replicas would find no room"
    if loss["staying"]:
        return "warn", f"{loss['staying']} of {loss['replicas']} replicas may not leave"
    return "good", "Can be lost"


async def _load(page: Page) -> Mapping[str, Any]:
    query = {field: page.query[field] for field in _FIELDS if page.query.get(field)}
    problem = ""
    try:
        found = await page.api.get(clusterheadroom.PATH, **query, limit=str(PAGE_ROWS))
    except BadRequest as error:
        problem = error.message
        found = await page.api.get(clusterheadroom.PATH, limit=str(PAGE_ROWS))
    items = found["items"]
    after = found["metadata"].get("continue", "")
    return {
        "problem": problem,
        "items": items,
        "count": found["count"],
        "bars": to_bars(items),
        "verdicts": {item["cluster"]: verdict_of(item) for item in items},
        "lost": items[0] if query.get("without") and not problem else None,
        "amount": to_amount,
        "next": page.link(**{"continue": after}) if after else "",
        "first": page.link(**{"continue": ""}) if page.query.get("continue") else "",
    }


async def _table(page: Page) -> Table:
    query = {field: page.query[field] for field in ("cpu", "memory", "name") if page.query.get(field)}
    items, is_complete = await read_all(page, clusterheadroom.PATH, query, page_rows=100)
    return to_table(items, is_complete=is_complete)


def to_table(items: Sequence[Mapping[str, Any]], *, is_complete: bool = True) -> Table:
    """Return clusters as the rows of a file."""
    columns = (
        "cluster", "ready", "cpuFree", "cpu", "memoryFree", "memory", "fits", "waiting", "replicas",
        "withoutRoom", "staying", "taints",
    )  # fmt: skip
    rows = []
    for item in items:
        free, total, loss = item["available"], item["allocatable"], item["loss"]
        amounts = [to_amount(name, each[name]) for name in ("cpu", "memory") for each in (free, total)]
        counts = (item["fits"], item["waiting"], loss["replicas"], loss["homeless"], loss["staying"])
        rows.append([item["cluster"], item["isReady"], *amounts, *counts, item["taints"]])
    return Table("capacity", columns, rows, is_complete)


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return [(FEDERATED_CLUSTERS.path(), {})]


SCREEN = Screen("/ui/capacity", "Capacity", "capacity.html", _load, _watched, pause_s=10.0, table=_table)
