"""The numbers of the overview with their lines over time, as tiles. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.amounts import to_amount
from federation.planning.clusters.clustershare import ClusterShare
from federation.planning.cost.rates import from_nano
from federation.web.ui.clustercards import ClusterCard
from federation.web.ui.linechart import Line, draw_line

_FULL_PERCENT = 90
Series = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Tile:
    """A number of the fleet: `value` of `total`, where it leads, and its line; `words` say what the line shows."""

    title: str
    value: str
    total: str = ""
    tone: str = ""
    href: str = ""
    note: str = ""
    line: Line | None = None
    words: str = ""


def to_tiles(
    cards: Sequence[ClusterCard],
    shares: Sequence[ClusterShare],
    listed: Mapping[str, Any],
    entries: int,
    series: Series,
    span: str,
) -> list[Tile]:
    """Return the tiles about what the user may read: his clusters, and his objects with the entries about them."""
    found = (
        _clusters(cards, series, span),
        _objects(listed, series, span),
        _replicas(listed, series, span),
        _attention(entries, series, span) if listed["kinds"] or entries else None,
        _room("cpu", [(share.cpu_requested, share.cpu) for share in shares], series, span),
        _room("memory", [(share.memory_requested, share.memory) for share in shares], series, span),
        _price(shares, series, span),
    )
    return [tile for tile in found if tile is not None]


def _clusters(cards: Sequence[ClusterCard], series: Series, span: str) -> Tile | None:
    if not cards:
        return None
    ready = sum(card.health in ("ready", "limited") for card in cards)
    line = line_of(series, "clustersReady", "clusters")
    tone = "" if ready == len(cards) else "bad"
    words = describe_line("Clusters ready", line, span)
    return Tile("Clusters ready", str(ready), str(len(cards)), tone, "/ui/fleet", "", line, words)


def _objects(listed: Mapping[str, Any], series: Series, span: str) -> Tile | None:
    if not listed["kinds"]:
        return None  # what may not be seen is not 0
    line = line_of(series, "objectsDelivered")
    words = describe_line("Objects delivered", line, span)
    return Tile("Objects", f"{listed['counts'].get('all', 0):,}", "", "", "/ui/objects", "", line, words)


def _replicas(listed: Mapping[str, Any], series: Series, span: str) -> Tile | None:
    wanted, ready = listed["replicas"]["wanted"], listed["replicas"]["ready"]
    if not wanted:
        return None
    line, title = _line_of_trouble(series, "replicasUnplaced"), "Replicas without a cluster"
    tone, note = "" if ready == wanted else "warn", f"line: {title.lower()}" if line else ""
    href, words = "/ui/objects?sort=-ready", describe_line(title, line, span)
    return Tile("Replicas ready", f"{ready:,}", f"{wanted:,}", tone, href, note, line, words)


def _attention(entries: int, series: Series, span: str) -> Tile:
    line, title = _line_of_trouble(series, "objectsFailing"), "Objects not delivered"
    tone, note = "bad" if entries else "good", f"line: {title.lower()}" if line else ""
    return Tile(
        "Needs attention", str(entries), "", tone, "/ui/attention", note, line, describe_line(title, line, span)
    )


def _room(resource: str, amounts: Sequence[tuple[int, int]], series: Series, span: str) -> Tile | None:
    used, total = sum(used for used, _ in amounts), sum(total for _, total in amounts)
    if not total:
        return None
    title = f"{'CPU' if resource == 'cpu' else 'Memory'} requested"
    percent, line = round(100 * used / total), line_of(series, f"{resource}Requested", resource)
    tone, note = (
        "warn" if percent >= _FULL_PERCENT else "",
        f"{to_amount(resource, used)} of {to_amount(resource, total)}",
    )
    return Tile(title, f"{percent} %", "", tone, "/ui/capacity", note, line, describe_line(title, line, span))


def _price(shares: Sequence[ClusterShare], series: Series, span: str) -> Tile | None:
    priced = [share for share in shares if share.has_price]
    if not priced:
        return None
    line = line_of(series, "price")
    note = "" if len(priced) == len(shares) else f"by the rates of {len(priced)} of {len(shares)} clusters"
    price = from_nano(sum(share.price for share in priced))
    return Tile("Price per hour", f"{price:,.2f}", "", "", "", note, line, describe_line("Price per hour", line, span))


def line_of(series: Series, name: str, highest: str = "") -> Line | None:
    """Return the line of a series, None without it; `highest` names the series whose greatest value is at the top."""
    if name not in series:
        return None
    top = max((value for value in series.get(highest, ()) if value is not None), default=None)
    return draw_line(series[name], top)


def _line_of_trouble(series: Series, name: str) -> Line | None:
    """Return the line of a series that is zero most of the time, None while it is."""
    line = line_of(series, name)
    return line if line is not None and line.most else None


def describe_line(title: str, line: Line | None, span: str) -> str:
    """Return what a line shows, for readers who do not see it; "" without one."""
    if line is None or line.last is None or line.least is None or line.most is None:
        return ""
    return f"{title} in the last {span}: now {line.last:,.4g}, from {line.least:,.4g} to {line.most:,.4g}"
