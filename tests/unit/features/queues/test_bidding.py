"""Jobs with a deadline: the annotation, the cheapest cluster in time, and the admission that waits for it."""

import json
from dataclasses import replace

import pytest
from tests.unit.features.queues.test_admission import NOW, a_job, a_queue, rooms, running

from federation.api import names
from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.facts import Bids, Capacity, Job, Lack, Waits
from federation.scheduling.deadlines import (
    Deadline,
    Offer,
    by_cost,
    read_deadline,
    to_alternatives,
)

HOUR_S = 3600.0
BY = "2026-03-01T06:00:00Z"
BY_S = 1772344800.0
CHEAP, DEAR, SPOT = Offer("cheap", 10, False, None), Offer("dear", 40, False, None), Offer("spot", 2, True, None)


def annotated(**wish: object) -> dict[str, str]:
    return {names.DEADLINE: json.dumps({"by": BY, **wish})}


@pytest.mark.parametrize(
    ("wish", "limit_s", "losses", "expected"),
    [
        pytest.param({"runTime": "2h"}, None, 0, Deadline(BY_S, 7200, 7200, 1, "price"), id="without checkpoints"),
        pytest.param({}, 60.0, 0, Deadline(BY_S, 60, 60, 1, "price"), id="the limit of its kind"),
        pytest.param(
            {"runTime": "2h", "checkpointEvery": "10m", "spotRetries": 3, "minimize": "Carbon"}, None, 1,
            Deadline(BY_S, 7200, 600, 2, "carbon"), id="all fields, and one cluster lost",
        ),
        pytest.param({"runTime": "1m", "checkpointEvery": "10m"}, None, 5, Deadline(BY_S, 60, 60, 0, "price"), id="short"),
    ],
)  # fmt: skip
def test_a_deadline_is_read(wish: dict[str, object], limit_s: float | None, losses: int, expected: Deadline) -> None:
    assert read_deadline(annotated(**wish), limit_s, losses) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tomorrow", "JSON is malformed"),
        ("{}", "missing required field `by`"),
        (json.dumps({"by": "2026-03-01"}), "Invalid RFC3339"),
        (json.dumps({"by": BY, "runtime": "2h"}), "unknown field `runtime`"),
        (json.dumps({"by": BY, "runTime": "soon"}), "'soon' is not a duration"),
        (json.dumps({"by": BY, "runTime": "-2h"}), "runTime is -2h"),
        (json.dumps({"by": BY, "runTime": "9000h"}), "runTime is 9000h"),
        (json.dumps({"by": BY, "runTime": "1h", "spotRetries": -1}), ">= 0"),
        (json.dumps({"by": BY, "runTime": "1h", "minimize": "Time"}), "Invalid enum value 'Time'"),
        (json.dumps({"by": BY}), "has no runTime, and the job has no activeDeadlineSeconds"),
        ("\ud800", "annotation"),
        ("[" * 100_000, "annotation"),
    ],
)
def test_a_malformed_deadline_says_what_is_wrong(text: str, problem: str) -> None:
    found = read_deadline({names.DEADLINE: text}, None)
    assert isinstance(found, str)
    assert problem in found
    assert names.DEADLINE in found


def test_no_annotation_is_no_deadline() -> None:
    assert read_deadline({}, 60.0) is None


def ranked(deadline: Deadline, *offers: Offer) -> list[tuple[str, bool]]:
    return [(each.cluster, each.is_met) for each in to_alternatives(deadline, offers, 0.0)]


@pytest.mark.parametrize(
    ("by_h", "retries", "checkpoint_h", "expected"),
    [
        pytest.param(9, 1, 2, [("spot", True), ("cheap", True), ("dear", True)], id="time for one run lost"),
        pytest.param(3.5, 1, 2, [("cheap", True), ("dear", True), ("spot", False)], id="no time for a run lost"),
        pytest.param(3.5, 1, 0.5, [("spot", True), ("cheap", True), ("dear", True)], id="time for a checkpoint lost"),
        pytest.param(3.5, 4, 0.5, [("cheap", True), ("dear", True), ("spot", False)], id="not for four of them"),
        pytest.param(9, 0, 0.5, [("cheap", True), ("dear", True), ("spot", False)], id="no retry left"),
        pytest.param(2.5, 1, 2, [("dear", True), ("cheap", False), ("spot", False)], id="no time to wait"),
        pytest.param(1, 1, 2, [("dear", False), ("cheap", False), ("spot", False)], id="too late everywhere"),
    ],
)
def test_the_cheapest_cluster_in_time_is_first(
    by_h: float, retries: int, checkpoint_h: float, expected: list[tuple[str, bool]]
) -> None:
    deadline = Deadline(by_h * HOUR_S, 2 * HOUR_S, checkpoint_h * HOUR_S, retries, "price")
    offers = (replace(DEAR, start_s=0), replace(CHEAP, start_s=HOUR_S), replace(SPOT, start_s=0))
    assert ranked(deadline, *offers) == expected


def test_an_unknown_start_is_never_in_time_and_an_unknown_price_is_the_highest() -> None:
    deadline = Deadline(99 * HOUR_S, HOUR_S, HOUR_S, 1, "price")
    unpriced = Offer("unpriced", None, False, 0)
    assert ranked(deadline, CHEAP, unpriced, replace(DEAR, start_s=0)) == [
        ("dear", True),
        ("unpriced", True),
        ("cheap", False),
    ]


def bidding(name: str, by_s: float, run_s: float = 100.0, **more: object) -> Job:
    offers = sorted((Offer("east", 40, False, None), Offer("west", 10, False, None)), key=by_cost)
    return a_job(name, 4, bids=Bids(Deadline(by_s, run_s, run_s, 1, "price"), tuple(offers)), **more)


def test_a_job_waits_for_the_cheaper_cluster_while_it_ends_there_in_time() -> None:
    blocks = running("r", 18, cluster="west", started_s=NOW - 50, limit_s=100)  # west is free in 50 seconds
    queues, clusters = {"q": a_queue(nominal=100)}, rooms(east=20, west=2)

    def decided(by_s: float) -> tuple[list[frozenset[str]], Waits | None, list[tuple[str, bool]]]:
        found = admit(queues, [blocks, bidding("j", by_s), a_job("other", 2, created_s=9)], Capacity(clusters), NOW)
        assert "other" in found.admitted, "nothing is kept for a job that could start now"
        alternatives = [(each.cluster, each.is_met) for each in found.alternatives["j"]]
        mine = [each.clusters for key, each in found.admitted.items() if key == "j"]
        return mine, found.waits.get("j"), alternatives

    cheaper = Waits(Lack.CHEAPER, "west")
    assert decided(NOW + 200) == ([], cheaper, [("west", True), ("east", True)])
    east = frozenset(("east",))
    assert decided(NOW + 152) == ([east], None, [("east", True), ("west", False)]), "the estimate may be late"
    assert decided(NOW + 10) == ([east], None, [("east", False), ("west", False)]), "late is better than never"


def test_a_job_that_has_room_in_the_cheapest_cluster_starts_there() -> None:
    found = admit({"q": a_queue()}, [bidding("j", NOW + 500)], Capacity(rooms(east=20, west=20)), NOW)
    assert found.admitted["j"].clusters == {"west"}
