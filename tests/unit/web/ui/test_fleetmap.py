"""The map of the fleet: which moves are flows, and a picture whose boxes and numbers do not touch."""

import re
from itertools import combinations
from typing import Any

import pytest

from federation.web.ui.clustercards import ClusterCard
from federation.web.ui.fleetmap import BOX_WIDTH, PLACES_MAX, SQUARES_MAX, WIDTH, draw, places_of
from federation.web.ui.flows import Flow, flows_between, moved_by

REGIONS = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "c1": "c"}


def a_card(name: str, region: str, health: str = "ready") -> ClusterCard:
    return ClusterCard(name, region, health, health.title(), "", "", "v1.36.0", 3, (), (), ())


def a_flow(source: str, target: str, replicas: int = 1) -> Flow:
    return Flow(source, target, "2026-01-01T00:00:00Z", "web", "/ui/decisions/web", replicas, 1)


def a_record(before: dict[str, int | None], after: dict[str, int | None], name: str = "web") -> dict[str, Any]:
    about = {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": name, "at": "2026-01-01T00:00:00Z"}
    return {**about, "explanation": {"unit": {}, "previous": before, "placements": after}}


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        ({"a1": 3}, {"b1": 3}, [("a1", "b1", 3)]),
        ({"a1": 3}, {"a1": 5}, []),
        ({"a1": 3, "b1": 3}, {"a1": 1}, []),
        ({}, {"a1": 3}, []),
        ({"a1": 4}, {"a1": 1, "b1": 5}, [("a1", "b1", 3)]),
        ({"a1": 5, "b1": 2}, {"a2": 2, "c1": 5}, [("a1", "a2", 2), ("a1", "c1", 3), ("b1", "c1", 2)]),
        ({"a1": None}, {"b1": None}, [("a1", "b1", 1)]),
        ({"a1": 2}, {}, []),
    ],
    ids=["moved", "grown", "shrunk", "first", "moved and grown", "in the region first", "copy", "refused keeps it"],
)
def test_what_one_cluster_loses_and_another_gains_has_moved(
    before: dict[str, int | None], after: dict[str, int | None], moves: list[tuple[str, str, int]]
) -> None:
    assert moved_by(a_record(before, after)["explanation"], REGIONS) == moves


def test_a_deferred_decision_moves_nothing() -> None:
    assert moved_by({"previous": {"a1": 1}, "placements": {"b1": 1}}, REGIONS) == []


def test_flows_add_up_and_name_their_newest_decision() -> None:
    records = [a_record({"a1": 2}, {"b1": 2}, "new"), a_record({"a1": 3}, {"b1": 3}), a_record({"c1": 9}, {"a1": 9})]
    found = [(flow.source, flow.target, flow.replicas, flow.objects, flow.name) for flow in flows_between(records, {})]
    assert found == [("c1", "a1", 9, 1, "web"), ("a1", "b1", 5, 2, "new")]


def test_places_are_regions_or_the_clusters_of_one_with_its_partners() -> None:
    cards = [a_card(name, region) for name, region in REGIONS.items()]
    flows = [a_flow("a1", "b1"), a_flow("b2", "c1")]
    assert [place.key for place in places_of(cards, flows, "")] == ["a", "b", "c"]
    assert [place.key for place in places_of(cards, flows, "a")] == ["a1", "a2", "b"]
    assert [place.key for place in places_of(cards[:2], [], "")] == ["a1", "a2"]


def test_moves_within_a_region_are_told_in_its_box() -> None:
    cards = [a_card(name, region, "lost" if name == "a2" else "ready") for name, region in REGIONS.items()]
    flows = [a_flow("a2", "a1", 1200), a_flow("a2", "b1", 3), a_flow("gone", "b1", 7)]
    picture = draw(places_of(cards, flows, ""), flows)
    box = picture.boxes[0]
    assert (box.title, box.tone, box.notes) == ("a", "bad", ("1 of 2 ready", "3 left · 1,200 within"))
    assert [square.tone for square in box.squares] == ["bad", "good"]
    assert [(arrow.replicas, arrow.words) for arrow in picture.arrows] == [(3, "a to b: 3 replicas of 1 move")]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9, 14, 40])
def test_boxes_do_not_touch_and_all_is_within_the_picture(count: int) -> None:
    cards = [a_card(f"r{region}-{at}", f"r{region}") for region in range(count) for at in range(1 + 7 * region)]
    flows = [
        a_flow(f"r{one}-0", f"r{other}-0", one + 1) for one in range(count) for other in range(count) if one != other
    ]
    picture = draw(places_of(cards, flows, ""), flows)
    assert len(picture.boxes) <= max(PLACES_MAX, 1)
    for one, other in combinations(picture.boxes, 2):
        beside = one.x + BOX_WIDTH <= other.x or other.x + BOX_WIDTH <= one.x
        assert beside or one.y + one.height < other.y or other.y + other.height < one.y, (one.title, other.title)
    for box in picture.boxes:
        assert 0 <= box.y <= picture.height - box.height
        assert 0 <= box.x <= WIDTH - BOX_WIDTH
        assert len(box.squares) <= SQUARES_MAX
        assert all(box.y < square.y < box.y + box.height - 12 for square in box.squares)
    for arrow in picture.arrows:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", f"{arrow.path} {arrow.head}")]
        assert all(-20 <= number <= max(WIDTH, picture.height) + 20 for number in numbers)
        assert 0 <= arrow.x <= WIDTH
        assert 0 <= arrow.y <= picture.height


def test_numbers_of_opposite_arrows_do_not_touch() -> None:
    cards = [a_card("a1", "a"), a_card("b1", "b")]
    flows = [a_flow("a1", "b1", 40), a_flow("b1", "a1", 4)]
    first, second = draw(places_of(cards, flows, ""), flows).arrows
    assert first.width > second.width
    assert abs(first.x - second.x) > 34 or abs(first.y - second.y) > 20
