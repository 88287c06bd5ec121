"""Tiles of the overview: what is left out, tones, and the words for lines."""

from typing import Any

from federation.planning.clusters.clustershare import ClusterShare
from federation.web.ui.clustercards import ClusterCard
from federation.web.ui.overview import notable, span_for, squares_of, to_course
from federation.web.ui.tiles import Series, Tile, to_tiles


def a_card(name: str, health: str = "ready", region: str = "eu") -> ClusterCard:
    return ClusterCard(name, region, health, health, "", "", "", 1, (), (), ())


def tiles(
    cards: list[ClusterCard] | None = None,
    shares: list[ClusterShare] | None = None,
    counts: dict[str, Any] | None = None,
    entries: int = 0,
    series: Series | None = None,
) -> dict[str, Tile]:
    listed = {"counts": {"all": 4}, "kinds": ["Deployment"], "replicas": {"wanted": 0, "ready": 0}, **(counts or {})}
    return {tile.title: tile for tile in to_tiles(cards or [], shares or [], listed, entries, series or {}, "1 h")}


def test_a_user_of_one_namespace_sees_no_tiles_of_the_fleet() -> None:
    assert list(tiles()) == ["Objects", "Needs attention"]
    assert tiles(counts={"counts": {}, "kinds": []}) == {}, "what may not be seen is not 0"


def test_a_lost_cluster_and_missing_replicas_show() -> None:
    found = tiles(
        [a_card("a"), a_card("b", "lost"), a_card("c", "limited")],
        counts={"replicas": {"wanted": 9, "ready": 7}},
        entries=2,
        series={"clusters": [3.0, 3.0], "clustersReady": [3.0, 2.0], "objectsFailing": [0.0, 0.0]},
    )
    ready = found["Clusters ready"]
    assert (ready.value, ready.total, ready.tone) == ("2", "3", "bad")
    assert ready.words == "Clusters ready in the last 1 h: now 2, from 2 to 3"
    assert found["Replicas ready"].tone == "warn"
    assert (found["Needs attention"].tone, found["Needs attention"].line) == ("bad", None), "no line of zeros"


def test_room_and_price_are_those_of_all_clusters() -> None:
    gibi = 2**30
    full = ClusterShare(True, 4000, 3800, 8 * gibi, gibi, 2 * 10**9, True)
    found = tiles([a_card("a"), a_card("b")], [full, ClusterShare(True, 4000, 3600, 8 * gibi, 0)])
    cpu, memory = found["CPU requested"], found["Memory requested"]
    assert (cpu.value, cpu.note, cpu.tone) == ("92 %", "7.4 of 8", "warn")
    assert (memory.value, memory.note, memory.tone) == ("6 %", "1Gi of 16Gi", "")
    assert (found["Price per hour"].value, found["Price per hour"].note) == ("2.00", "by the rates of 1 of 2 clusters")
    assert "Price per hour" not in tiles([a_card("a")], [ClusterShare(True, 1, 0, 1, 0)])


def test_the_span_is_the_shortest_that_shows_all() -> None:
    assert [span_for(seconds) for seconds in (15, 900, 901, 7200, 21600)] == ["0.25", "0.25", "1", "3", "6"]


def test_clusters_in_trouble_are_in_the_picture_of_a_large_fleet() -> None:
    cards = [a_card(f"m-{number}") for number in range(400)] + [a_card("broken", "lost", "zz")]
    regions, more = squares_of(cards)
    assert more == 101
    assert [card.name for card in regions[-1][1]] == ["broken"]


def test_charts_of_objects_need_their_series() -> None:
    assert to_course({"clusters": [1.0]}) is None
    names = ("objectsDelivered", "objectsUnderway", "objectsSilent", "objectsFailing")
    course = to_course({**{name: [1.0, 2.0] for name in names}, "moves": [None, 3.0], "failures": [0.0, 1.0]})
    assert course is not None
    assert (course.moved, course.failed, course.most) == (3, 1, 3)


def test_decisions_that_changed_nothing_are_no_news() -> None:
    about = {"group": "apps", "kind": "Deployment", "namespace": "shop", "at": "2026-01-01T00:00:00Z"}
    kept = {**about, "name": "kept", "outcome": "Deferred", "explanation": {"reason": "clusterJoined"}}
    moved = {"unit": {}, "previous": {"a": 1}, "placements": {"b": 1}}
    records = [kept] * 9 + [{**about, "name": "moved", "outcome": "Scheduled", "explanation": moved}]
    assert [entry.name for entry in notable(records)] == ["moved"]
    assert len(notable([kept] * 9)) == 8
