"""A table of rounds: who starts, who waits for what, who gives way."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from federation.features.queues.rules.admission import admit
from federation.features.queues.rules.facts import (
    Capacity,
    Job,
    Lack,
    Option,
    Queue,
    Reclaim,
    Reservation,
    Room,
    Waits,
)
from federation.features.queues.rules.heads import DEPTH
from federation.planning.accounts.usage import Limit

CPU = ("any", "cpu")
NOW = 1_000.0


def a_queue(name: str = "q", nominal: int = 10, **more: object) -> Queue:
    borrowing, lending = more.pop("borrowing", None), more.pop("lending", None)
    return Queue(name, {CPU: Limit(nominal, borrowing, lending)}, **more)  # type: ignore[arg-type]  # fields


def a_job(
    name: str, cores: int = 1, queue: str = "q", clusters: Sequence[str] = ("east", "west"), **more: object
) -> Job:
    options = (Option({CPU: cores}, frozenset(clusters)),)
    return Job(name, queue, f"team/{queue}", options, {"cpu": cores}, **more)  # type: ignore[arg-type]  # fields


def running(name: str, cores: int = 1, cluster: str = "east", **more: object) -> Job:
    return replace(a_job(name, cores, **more), holds={CPU: cores}, cluster=cluster)  # type: ignore[arg-type]  # fields


def rooms(**free: int) -> dict[str, Room]:
    return {name: Room({"cpu": 20}, {"cpu": amount}) for name, amount in free.items()}


def started(
    jobs: Sequence[Job],
    *queues: Queue,
    clusters: Mapping[str, Room] | None = None,
    kept: Mapping[str, Reservation] | None = None,
) -> list[str]:
    known = {queue.name: queue for queue in queues or (a_queue(),)}
    return sorted(admit(known, jobs, Capacity(clusters or rooms(east=20, west=20), kept or {}), NOW).admitted)


def why(jobs: Sequence[Job], *queues: Queue, clusters: Mapping[str, Room] | None = None) -> Mapping[str, Waits]:
    known = {queue.name: queue for queue in queues or (a_queue(),)}
    return admit(known, jobs, Capacity(clusters or rooms(east=20, west=20)), NOW).waits


def gone(jobs: Sequence[Job], *queues: Queue, clusters: Mapping[str, Room] | None = None) -> list[str]:
    known = {queue.name: queue for queue in queues}
    return sorted(admit(known, jobs, Capacity(clusters or rooms(east=20, west=20)), NOW).evicted)


def test_the_oldest_starts_first_and_a_higher_priority_before_it() -> None:
    jobs = [a_job("new", 6, created_s=2), a_job("old", 6, created_s=1)]
    assert started(jobs) == ["old"]
    assert started([*jobs, a_job("urgent", 6, created_s=3, priority=5)]) == ["urgent"]
    assert started([*jobs, a_job("back", 6, created_s=3, is_front=True)]) == ["back"]


@pytest.mark.parametrize(
    ("job", "waits"),
    [
        pytest.param(a_job("j", 11), Waits(Lack.TOO_LARGE, *CPU, 11, 10), id="more than the quota"),
        pytest.param(a_job("j", 8), Waits(Lack.QUOTA, *CPU, 8, 6), id="the quota is used"),
        pytest.param(replace(a_job("j"), options=()), Waits(Lack.NO_QUOTA), id="no flavor"),
        pytest.param(
            replace(a_job("j"), options=(Option({("any", "gpu"): 1}, frozenset(("east",))),)),
            Waits(Lack.NO_QUOTA, "any", "gpu", 1),
            id="no quota of the resource",
        ),
        pytest.param(a_job("j", not_before_s=NOW + 1), Waits(Lack.RETRY), id="refused a moment ago"),
        pytest.param(a_job("j", problem="bad"), Waits(Lack.PROBLEM), id="a problem"),
        pytest.param(
            replace(a_job("j"), needs={"cpu": 30}), Waits(Lack.TOO_LARGE, "", "cpu", 30, 20), id="larger than a cluster"
        ),
        pytest.param(
            a_job("j", 3, clusters=("west",)), Waits(Lack.ROOM, "", "cpu", 3, 2), id="no room in its clusters"
        ),
        pytest.param(
            a_job("j", 1, excluded=frozenset(("east", "west"))), Waits(Lack.TOO_LARGE), id="refused everywhere"
        ),
    ],
)
def test_a_job_waits_for(job: Job, waits: Waits) -> None:
    assert why([running("other", 4), job], clusters=rooms(east=16, west=2))["j"] == waits


def test_a_queue_that_is_held_admits_nothing() -> None:
    assert why([a_job("j")], a_queue(is_held=True))["j"] == Waits(Lack.HELD)


def test_a_job_of_a_queue_that_is_gone_waits() -> None:
    assert why([a_job("j", queue="gone")])["j"] == Waits(Lack.PROBLEM)


def test_small_jobs_do_not_pass_the_first_job_unless_they_leave_it_its_quota() -> None:
    jobs = [running("r", 6), a_job("large", 8, created_s=1), a_job("small", 2, created_s=2)]
    assert started(jobs) == []
    assert why(jobs)["small"].lack is Lack.BEHIND
    assert started(jobs, a_queue(nominal=16)) == ["large", "small"]


def test_a_job_that_ends_in_time_passes_the_first_one() -> None:
    ends = running("r", 6, started_s=NOW - 50, limit_s=100)
    jobs = [ends, a_job("large", 8, created_s=1)]
    assert started([*jobs, a_job("short", 2, created_s=2, limit_s=50)]) == ["short"]
    assert started([*jobs, a_job("long", 2, created_s=2, limit_s=51)]) == []
    assert started([*jobs, a_job("endless", 2, created_s=2)]) == []


def test_the_time_until_which_others_may_pass_never_moves() -> None:
    """Otherwise a stream of jobs that pass would move the start of the first job for ever."""
    ends = running("r", 6, started_s=NOW - 10, limit_s=100)
    jobs = [ends, a_job("large", 8, created_s=1), a_job("short", 2, created_s=2, limit_s=50)]
    assert started(jobs, kept={"queue q": Reservation("large", NOW + 20)}) == []


def test_a_cluster_is_kept_for_a_job_that_has_quota_and_no_room() -> None:
    queues = a_queue(nominal=100)
    jobs = [running("r", 10), a_job("large", 15, created_s=1), a_job("small", 5, created_s=2)]
    clusters = rooms(east=10, west=5)
    found = admit({"q": queues}, jobs, Capacity(clusters), NOW)
    assert {key: kept.key for key, kept in found.reserved.items()} == {"queue q": "large", "cluster east": "large"}
    assert found.admitted["small"].clusters == {"west"}
    again = admit({"q": queues}, jobs, Capacity(rooms(east=6, west=9), found.reserved), NOW)
    assert again.reserved["cluster east"].key == "large", "the cluster stays the same"


def test_the_cluster_that_the_fewest_jobs_have_to_leave_is_kept() -> None:
    many = [running(f"small-{at}", 2, cluster="east") for at in range(4)]
    jobs = [*many, running("one", 10, cluster="west"), a_job("gang", 20)]
    known = {"q": a_queue(nominal=40)}

    found = admit(known, jobs, Capacity(rooms(east=12, west=10)), NOW)

    assert found.reserved["cluster west"].key == "gang", "east has more room, but waits for the last of four"


def test_quota_that_the_kept_cluster_releases_is_not_kept_a_second_time() -> None:
    known = {"q": a_queue(nominal=40)}
    jobs = [running("one", 12, cluster="west"), running("two", 18, cluster="east"), a_job("gang", 20)]
    free = rooms(east=2, west=8)

    assert started([*jobs, a_job("small", 2, created_s=1)], *known.values(), clusters=free) == ["small"]
    others = [replace(jobs[0], queue="other"), *jobs[1:]]  # what others release does not come back to the queue
    queues = (*known.values(), a_queue("other", 12))
    assert started([*others, a_job("small", 3, created_s=1)], *queues, clusters=rooms(east=3, west=8)) == []
    # 40 - 18 = 22 are left of the queue, the gang needs 20


def test_nothing_is_kept_for_a_job_that_would_not_fit_into_an_empty_cluster() -> None:
    """Its pods are too large for the nodes, and only the sums look large enough."""
    jobs = [running("r", 10), a_job("odd", 15, created_s=1), a_job("small", 5, created_s=2)]
    found = admit(
        {"q": a_queue(nominal=100)}, jobs, Capacity(rooms(east=10, west=5), {}, lambda key, *_: key != "odd"), NOW
    )
    assert found.reserved == {}
    assert found.admitted["small"].clusters == {"east", "west"}


def test_namespaces_share_a_queue_by_what_they_use_and_not_by_the_number_of_their_jobs() -> None:
    flood = [replace(a_job(f"flood-{n}", 2, created_s=n), leaf="noisy/q") for n in range(20)]
    late = [replace(a_job(f"late-{n}", 2, created_s=100 + n), leaf="quiet/q") for n in range(3)]
    assert started([*flood, *late]) == ["flood-0", "flood-1", "flood-2", "late-0", "late-1"]


def test_a_job_behind_too_many_others_is_not_looked_at() -> None:
    flood = [a_job(f"flood-{n:05}", 9, created_s=n) for n in range(DEPTH + 1)]
    assert why(flood)[f"flood-{DEPTH:05}"] == Waits(Lack.TURN, needed=DEPTH)


@pytest.mark.parametrize("limit_s", [None, 60.0, 10.0])
def test_a_job_that_ends_in_time_passes_equal_ones_that_do_not(limit_s: float | None) -> None:
    ends = running("r", 6, started_s=NOW - 50, limit_s=100)
    long = [a_job(f"long-{at}", 2, created_s=2, limit_s=limit and limit * 100) for at, limit in enumerate((None, 60.0))]
    short = a_job("short", 2, created_s=3, limit_s=limit_s)
    found = why([ends, a_job("large", 8, created_s=1), *long, short, a_job("last", 2, created_s=4)])
    assert found["long-0"] == found["long-1"] == found["last"] == Waits(Lack.BEHIND, *CPU, 2, 0)
    assert ("short" not in found) is (limit_s == 10.0)


def test_two_admissions_of_a_round_never_count_on_the_same_room() -> None:
    assert started([a_job("a", 6), a_job("b", 6)], a_queue(nominal=100), clusters=rooms(east=10, west=10)) == ["a"]


# -- cohorts

LENDER = a_queue("lender", 10, cohort="lab")
BORROWER = a_queue("q", 4, cohort="lab")


@pytest.mark.parametrize(
    ("queues", "cores", "starts"),
    [
        pytest.param((BORROWER,), 5, False, id="alone it has its own"),
        pytest.param((BORROWER, LENDER), 14, True, id="all that is idle"),
        pytest.param((BORROWER, LENDER), 15, False, id="more than there is"),
        pytest.param((a_queue("q", 4, cohort="lab", borrowing=2), LENDER), 6, True, id="up to its borrowing limit"),
        pytest.param((a_queue("q", 4, cohort="lab", borrowing=2), LENDER), 7, False, id="beyond its borrowing limit"),
        pytest.param((BORROWER, a_queue("lender", 10, cohort="lab", lending=3)), 7, True, id="up to the lending limit"),
        pytest.param((BORROWER, a_queue("lender", 10, cohort="lab", lending=3)), 8, False, id="beyond what is lent"),
        pytest.param((BORROWER, a_queue("lender", 10, cohort="other")), 5, False, id="of another cohort"),
    ],
)
def test_a_queue_borrows(queues: tuple[Queue, ...], cores: int, starts: bool) -> None:  # a table
    assert bool(started([a_job("j", cores)], *queues)) is starts


def test_who_needs_only_its_own_comes_before_a_borrower() -> None:
    jobs = [a_job("borrows", 10, created_s=1), a_job("own", 10, "lender", created_s=2)]
    assert started(jobs, BORROWER, LENDER) == ["own"]


def test_shares_count_the_dominant_resource_and_the_weight() -> None:
    queues = [a_queue("a", 10, cohort="lab"), a_queue("b", 10, cohort="lab", weight=3)]
    jobs = [a_job(f"{queue}{n}", 2, queue, created_s=n) for queue in "ab" for n in range(10)]
    clusters = rooms(east=100)
    clusters["east"] = Room({"cpu": 100}, {"cpu": 16})
    found = [name[0] for name in started(jobs, *queues, clusters=clusters)]
    assert (found.count("a"), found.count("b")) == (3, 5), "b may use more, as long as both need nothing borrowed"


# -- preemption

WITHIN = a_queue("q", 10, gives_way_within=True, evictions_left=2)


def test_lower_priorities_of_the_queue_give_way_the_latest_first_and_no_more_than_needed() -> None:
    lows = [running(f"low-{n}", 3, priority=1, started_s=n) for n in range(3)]
    assert gone([*lows, a_job("high", 4, priority=2)], WITHIN) == ["low-2"]
    assert gone([*lows, a_job("high", 5, priority=2)], WITHIN) == ["low-1", "low-2"]
    assert gone([*lows, a_job("same", 4, priority=1)], WITHIN) == []
    assert gone([*lows, a_job("high", 4, priority=2)], a_queue("q", 10, evictions_left=2)) == []


def test_nothing_is_evicted_if_the_budget_or_the_victims_are_not_enough() -> None:
    lows = [running(f"low-{n}", 3, priority=1, started_s=n) for n in range(3)]
    assert gone([*lows, a_job("high", 8, priority=2)], WITHIN) == [], "it needs three, and two are allowed"
    assert gone([*lows, running("peer", 1, priority=2), a_job("high", 10, priority=2)], WITHIN) == []


def test_a_job_that_is_leaving_already_counts_as_gone() -> None:
    leaving = replace(running("low-1", 3, priority=1), is_leaving=True)
    jobs = [running("low-0", 3, priority=1), leaving, running("low-2", 3, priority=1), a_job("high", 4, priority=2)]
    assert gone(jobs, WITHIN) == []


def test_jobs_give_way_for_room_in_one_cluster() -> None:
    queue = a_queue("q", 100, gives_way_within=True, evictions_left=5)
    lows = [running("east-0", 8, "east", priority=1), running("west-0", 8, "west", priority=1)]
    clusters = rooms(east=12, west=2)
    assert gone([*lows, a_job("high", 18, priority=2)], queue, clusters=clusters) == ["east-0"]


@pytest.mark.parametrize(
    ("reclaim", "priority", "evicted"),
    [
        (Reclaim.NEVER, 9, []),
        (Reclaim.LOWER_PRIORITY, 0, []),
        (Reclaim.LOWER_PRIORITY, 9, ["borrowed"]),
        (Reclaim.ANY, 0, ["borrowed"]),
    ],
)
def test_borrowers_give_back_what_its_owner_needs(reclaim: Reclaim, priority: int, evicted: list[str]) -> None:
    owner = a_queue("owner", 10, cohort="lab", reclaim=reclaim)
    other = a_queue("q", 4, cohort="lab", evictions_left=3)
    jobs = [
        running("within", 4, priority=5, started_s=1),
        running("borrowed", 8, priority=5, started_s=2),
        a_job("mine", 10, "owner", priority=priority),
    ]
    assert gone(jobs, owner, other) == evicted


def test_a_job_that_has_grown_gives_its_place_back() -> None:
    assert gone([replace(running("r", 4), has_grown=True)], a_queue()) == ["r"]


def test_with_best_effort_a_small_job_starts_behind_a_large_one_that_waits() -> None:
    jobs = [running("now", 6), a_job("large", 8, created_s=1), a_job("small", 2, created_s=2)]
    assert started(jobs, a_queue()) == []
    assert started(jobs, a_queue(keeps=False)) == ["small"]


def test_with_best_effort_what_gives_way_to_a_job_is_kept_for_it() -> None:
    queue = a_queue(keeps=False, gives_way_within=True, evictions_left=5)
    jobs = [running("now", 6), a_job("urgent", 8, priority=5), a_job("small", 2, created_s=2)]
    assert gone(jobs, queue) == ["now"]
    assert started(jobs, queue) == []
    leaving = replace(jobs[0], is_leaving=True)
    assert started([leaving, *jobs[1:]], queue) == []


def test_nothing_gives_way_to_a_job_that_a_cluster_refused() -> None:
    queue = a_queue(gives_way_within=True, evictions_left=5)
    assert gone([running("now", 6), a_job("urgent", 8, priority=5, may_displace=False)], queue) == []
