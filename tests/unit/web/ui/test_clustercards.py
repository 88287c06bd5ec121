"""Clusters as cards: health, room, regions, filters, and what needs attention."""

from datetime import UTC, datetime
from typing import Any

import pytest

from federation.web.ui.clustercards import NO_REGION, by_region, concerns_of, matches, to_card

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_cluster(name: str = "east", *, labels: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {}, "status": status}


def conditions(**statuses: str) -> list[dict[str, str]]:
    return [
        {"type": type_, "status": status, "reason": "R", "message": f"{type_} {status}"}
        for type_, status in statuses.items()
    ]


READY = conditions(Joined="True", Ready="True")


@pytest.mark.parametrize(
    ("found", "health", "state"),
    [
        ([], "unknown", "Unknown"),
        (conditions(Joined="False"), "lost", "Not joined"),
        (conditions(Joined="True"), "unknown", "Unknown"),
        (conditions(Joined="True", Ready="Unknown"), "lost", "Not ready"),
        (READY, "ready", "Ready"),
        (conditions(Joined="True", Ready="True", Authorized="False"), "limited", "Limited rights"),
    ],
)
def test_the_health_of_a_cluster_is_its_first_condition_that_does_not_hold(
    found: list[dict[str, str]], health: str, state: str
) -> None:
    card = to_card(a_cluster(conditions=found))
    assert (card.health, card.state) == (health, state)


def test_room_is_shown_in_units_for_people_and_as_the_used_share() -> None:
    resources = {
        "allocatable": {"cpu": "48", "memory": "192Gi"},
        "available": {"cpu": "11500m", "memory": "96Gi"},
        "schedulableNodes": 3,
    }
    cpu, memory = to_card(a_cluster(resources=resources)).rooms
    assert (cpu.free, cpu.total, cpu.used_percent) == ("11.5", "48", 76)
    assert (memory.free, memory.total, memory.used_percent) == ("96Gi", "192Gi", 50)


def test_more_requested_than_there_is_is_no_negative_room() -> None:
    resources = {"allocatable": {"cpu": "48"}, "available": {"cpu": "-16"}}
    cpu = to_card(a_cluster(resources=resources)).rooms[0]
    assert (cpu.free, cpu.total, cpu.used_percent, cpu.over) == ("0", "48", 100, "16")


def test_room_that_is_not_known_is_not_shown_as_used() -> None:
    assert [room.used_percent for room in to_card(a_cluster()).rooms] == [None, None]
    empty = {"allocatable": {"cpu": "0"}, "available": {"cpu": "0"}}
    assert to_card(a_cluster(resources=empty)).rooms[0].used_percent is None


def test_clusters_without_a_region_come_last() -> None:
    clusters = [
        a_cluster("c"),
        a_cluster("b", region="south"),
        a_cluster("a", region="north"),
    ]
    grouped = [(region, [card.name for card in cards]) for region, cards in by_region(map(to_card, clusters))]
    assert grouped == [("north", ["a"]), ("south", ["b"]), (NO_REGION, ["c"])]


def test_all_filters_must_match() -> None:
    card = to_card(a_cluster(labels={"tier": "gold"}, region="north", conditions=READY))
    assert matches(card, "", "", "")
    assert matches(card, "gold", "north", "ready")
    assert not matches(card, "gold", "south", "ready")
    assert not matches(card, "silver", "", "")
    assert not matches(card, "", "", "lost")


@pytest.mark.parametrize(
    ("expires", "text"),
    [
        ("2025-12-31T23:59:59Z", "has expired"),
        ("2026-01-01T00:01:00Z", "expires within minutes"),
        ("2026-01-01T01:00:00Z", ""),
        ("soon", ""),
    ],
)
def test_a_token_that_was_not_renewed_needs_attention(expires: str, text: str) -> None:
    found = concerns_of(a_cluster(conditions=READY, credential={"expires": expires}), NOW)
    assert [concern.kind for concern in found] == (["Credentials"] if text else [])
    assert all(text in concern.text for concern in found)


def test_a_cluster_that_is_not_ready_needs_attention() -> None:
    (concern,) = concerns_of(a_cluster(conditions=conditions(Joined="True", Ready="False")), NOW)
    assert (concern.cluster, concern.kind, concern.text) == ("east", "Not ready", "Ready False")
