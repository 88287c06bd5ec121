"""Lanes of the timeline: times without an answer, marks of moves, and which clusters are shown."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.cputime import cpu_s

from federation.apimachinery.clock import to_rfc3339
from federation.web.ui.lanes import LANES_MAX, lanes_of
from federation.web.ui.timelinescreen import rows_of

START = datetime(2026, 1, 1, tzinfo=UTC)
END = START + timedelta(minutes=100)


def at(minute: float) -> str:
    return to_rfc3339(START + timedelta(minutes=minute))


def incident(minute: float, what: str, cluster: str = "east") -> dict[str, Any]:
    return {"at": at(minute), "cluster": cluster, "what": what, "text": ""}


def move(minute: float, before: dict[str, int], after: dict[str, int], name: str = "web") -> dict[str, Any]:
    explanation = {"unit": {}, "clusters": list(after), "previous": before, "placements": after}
    about = {"group": "apps", "kind": "Deployment", "namespace": "shop", "name": name}
    return {"at": at(minute), **about, "outcome": "Scheduled", "explanation": explanation}


@pytest.mark.parametrize(
    ("changes", "darks"),
    [
        ([(60, "back"), (20, "lost")], [(20, 40)]),
        ([(30, "back")], [(0, 30)]),
        ([(70, "lost")], [(70, 30)]),
        ([(90, "back"), (80, "lost"), (50, "lost"), (40, "back")], [(0, 40), (50, 40)]),
        ([(20.1, "back"), (20, "lost")], [(20, 0.5)]),
        ([(-5, "lost"), (10, "joined")], []),
        ([(40, "back"), (10, "joined")], []),
        ([(40, "back"), (30, "lost"), (12, "back"), (10, "joined")], [(30, 10)]),
    ],
    ids=[
        "lost and back",
        "lost before",
        "still lost",
        "lost twice in a row",
        "for a moment",
        "outside",
        "new",
        "new, then lost",
    ],
)
def test_a_cluster_is_dark_from_its_loss_until_it_answers(
    changes: list[tuple[float, str]], darks: list[tuple[float, float]]
) -> None:
    lanes, _ = lanes_of([incident(minute, what) for minute, what in changes], [], START, END)
    assert [(dark.x, dark.width) for lane in lanes for dark in lane.darks] == darks


def test_moves_of_one_step_are_one_mark_and_few_are_seen_beside_many() -> None:
    records = [move(50, {"east": 2}, {"east": 1, "west": 1}, f"web-{number}") for number in range(100)]
    records.append(move(10, {"east": 1, "west": 1}, {"east": 2}))
    lanes, more = lanes_of([], records, START, END)
    assert more == 0
    east, west = lanes
    (first, second) = east.marks
    assert (first.up, first.down, first.words) == (4.0, 0.0, "1 came or grew")
    assert (second.up, second.down) == (0.0, 14.0)
    assert second.words == "100 left or shrank"
    assert west.words == "west: objects came or grew 100 times, and left or shrank 1 time"


def test_lost_clusters_are_shown_before_those_with_most_moves() -> None:
    records = [move(number, {}, {f"member-{number}": 3}) for number in range(60)]
    lanes, more = lanes_of([incident(3, "lost", "zz")], records, START, END)
    assert len(lanes) == LANES_MAX
    assert more == 61 - LANES_MAX
    assert lanes[-1].cluster == "zz"


def test_what_changed_nothing_is_no_row() -> None:
    kept = move(5, {"east": 1}, {"east": 1})
    failed = {**move(6, {}, {}), "outcome": "NoFeasibleCluster"}
    rows = rows_of([incident(7, "lost")], [failed, kept, move(1, {"east": 1}, {"west": 1})])
    assert [(row[0][14:16], row[1] is not None) for row in rows] == [("07", True), ("06", False), ("01", False)]


def test_decisions_about_a_thousand_clusters_cost_no_square_of_them() -> None:
    names = [f"member-{number}" for number in range(1000)]
    record = move(5, dict.fromkeys(names, 1), dict.fromkeys(names, 2))
    _, taken_s = cpu_s(lambda: (rows_of([], [record] * 20), lanes_of([], [record] * 20, START, END)), 0.8)
    assert taken_s < 0.8, "a list that is searched per cluster takes 2 s"
