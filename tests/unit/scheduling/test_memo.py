"""Kept results: what stays true for the next snapshot, and how much is kept."""

from federation.scheduling.framework.memo import Memo, Result, Roster
from federation.scheduling.framework.testing import a_cluster
from federation.scheduling.framework.types import Cluster

EAST, NORTH, WEST = (a_cluster(name).built() for name in ("east", "north", "west"))
CLUSTERS = (EAST, NORTH, WEST)


class Kept:
    """A memo with its roster."""

    def __init__(self) -> None:
        self.roster = Roster()
        self.memo = Memo(self.roster, Result)

    def asked(self, shape: str, clusters: tuple[Cluster, ...]) -> list[int]:
        """Bring what is kept for the shape up to date, and return which clusters had to be asked about."""
        self.roster.move_to(clusters)
        known, stale = self.memo.find(shape)
        known.clusters = clusters
        return list(stale)


def test_only_what_changed_is_asked_again() -> None:
    kept = Kept()
    assert kept.asked("s", CLUSTERS) == [0, 1, 2]
    assert kept.asked("s", CLUSTERS) == []
    again = (EAST, a_cluster("north").labelled(a="b").built(), WEST)
    assert kept.asked("s", again) == [1]
    assert kept.asked("s", CLUSTERS) == [1]


def test_what_changed_between_two_questions_adds_up() -> None:
    kept = Kept()
    kept.asked("s", CLUSTERS)
    first = (EAST, a_cluster("north").built(), WEST)
    kept.asked("other", first)
    assert kept.asked("s", (a_cluster("east").built(), *first[1:])) == [0, 1]


def test_other_members_are_asked_about_anew() -> None:
    kept = Kept()
    kept.asked("s", CLUSTERS)
    assert kept.asked("s", CLUSTERS[1:]) == [0, 1]
    assert kept.asked("s", (WEST, NORTH)) == [0, 1]


def test_shapes_do_not_share_results_and_do_not_pile_up() -> None:
    kept = Kept()
    for index in range(200):
        assert kept.asked(f"shape-{index}", CLUSTERS) == [0, 1, 2]
    assert len(kept.memo._kept) == 128
    assert kept.asked("shape-0", CLUSTERS) == [0, 1, 2]


def test_shapes_that_nobody_asks_about_let_go_of_old_clusters() -> None:
    kept = Kept()
    kept.asked("old", CLUSTERS)
    for _ in range(600):
        kept.asked("used", (a_cluster("east").built(), NORTH, WEST))
    assert set(kept.memo._kept) == {"used"}
