"""The fleet: all clusters by region with health, free room, version and taints; and one cluster with its objects."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.naturalorder import natural_key
from federation.planning.diagnosis.objectsummary import Outcome
from federation.web import objectlist
from federation.web.ui import actionscreen
from federation.web.ui.clustercards import ClusterCard, by_region, concerns_of, matches, to_card
from federation.web.ui.clusterlist import read_clusters
from federation.web.ui.exports import Table
from federation.web.ui.objecttree import state_in
from federation.web.ui.screen import PAGE_ROWS, Collection, Page, Screen

_CARDS = 100
"""Clusters on one page."""
_PATH = FEDERATED_CLUSTERS.path()
_HEALTHS = (("", "Any health"), ("ready", "Ready"), ("limited", "Limited rights"), ("lost", "Not ready"))


async def _read(page: Page) -> tuple[list[ClusterCard], list[ClusterCard]]:
    """Return all clusters, and those that pass the filter, by region and name."""
    cards = [to_card(cluster) for cluster in await read_clusters(page)]
    query = page.query
    shown = [
        card for card in cards if matches(card, query.get("q", ""), query.get("region", ""), query.get("health", ""))
    ]
    return cards, sorted(shown, key=lambda card: (card.region, natural_key(card.name)))


async def _table(page: Page) -> Table:
    _, shown = await _read(page)
    columns = (
        "name", "region", "state", "version", "nodes", "cpuFree", "cpu", "memoryFree", "memory", "taints", "labels",
        "message",
    )  # fmt: skip
    rows = [
        [
            card.name,
            card.region,
            card.state,
            card.version,
            card.nodes,
            *(None if text == "-" else text for room in card.rooms for text in (room.free, room.total)),
            card.taints,
            card.labels,
            card.message,
        ]
        for card in shown
    ]
    return Table("clusters", columns, rows)


async def _load(page: Page) -> Mapping[str, Any]:
    cards, shown = await _read(page)
    query = page.query
    start = max(0, int(query.get("from", "0"))) if query.get("from", "0").isdecimal() else 0
    listed = await page.api.get(objectlist.PATH, countBy="cluster", limit="1")
    return {
        "placed": listed["countsByCluster"],
        "regions": by_region(shown[start : start + _CARDS]),
        "all_regions": [("", "All regions"), *((name, name) for name, _ in by_region(cards))],
        "healths": _HEALTHS,
        "tally": Counter(card.health for card in cards),
        "count": len(cards),
        "matching": len(shown),
        "start": start,
        "previous": page.link(**{"from": str(max(0, start - _CARDS)) if start > _CARDS else ""}) if start else "",
        "next": page.link(**{"from": str(start + _CARDS)}) if start + _CARDS < len(shown) else "",
    }


def _watched(page: Page) -> Sequence[Collection]:
    del page
    return [(_PATH, {})]


SCREEN = Screen("/ui/fleet", "Fleet", "fleet.html", _load, _watched, pause_s=3.0, table=_table)


async def _load_cluster(page: Page) -> Mapping[str, Any]:
    name = page.parts["name"]
    cluster = await page.api.get(f"{_PATH}/{name}")
    query = {"cluster": name, "limit": str(PAGE_ROWS)}
    query |= {key: page.query[key] for key in ("namespace", "sort", "continue") if page.query.get(key)}
    listed = await page.api.get(objectlist.PATH, **query)
    after = listed["metadata"].get("continue", "")
    return {
        "actions": await actionscreen.offered(
            page, await actionscreen.to_subject(page, FEDERATED_CLUSTERS, cluster, page.now, {})
        ),
        "address": actionscreen.address_of(FEDERATED_CLUSTERS, "", name),
        "done": actionscreen.done_by(page),
        "card": to_card(cluster),
        "state_here": state_here,
        "concerns": concerns_of(cluster, page.now),
        "endpoint": (cluster.get("spec") or {}).get("apiEndpoint", ""),
        "created": cluster["metadata"].get("creationTimestamp"),
        "listed": listed,
        "next": page.link(**{"continue": after}) if after else "",
    }


def state_here(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return tone and state of an object in the cluster of the page, None where nothing is known of it there."""
    outcome = Outcome(item["outcome"]) if item.get("outcome") else None
    return state_in(item["inCluster"], outcome) if item.get("inCluster") else None


def _watched_cluster(page: Page) -> Sequence[Collection]:
    return [(_PATH, {"fieldSelector": f"metadata.name={page.parts['name']}"})]


CLUSTER_SCREEN = Screen("/ui/fleet/{name}", "Cluster", "cluster.html", _load_cluster, _watched_cluster, is_listed=False)
