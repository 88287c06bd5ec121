"""Kept answers: what stays true for the next snapshot, and how much is kept."""

from federation.scheduling.framework.memo import Memo
from federation.scheduling.framework.testing import a_cluster
from federation.scheduling.framework.types import Cluster

EAST, NORTH, WEST = (a_cluster(name).built() for name in ("east", "north", "west"))
CLUSTERS = (EAST, NORTH, WEST)


def asked(memo: Memo, shape: str, clusters: tuple[Cluster, ...], positions: list[int] | None = None) -> list[int]:
    """Ask about all that has no answer yet, and return which positions that were."""
    answers = memo.answers(shape, clusters)
    todo = list(answers.to_ask(positions))
    answers.fill_in(todo, [clusters[at].name for at in todo])
    assert all(answers.values[at] == clusters[at].name for at in todo)
    return todo


def test_only_what_changed_is_asked_again() -> None:
    memo = Memo()
    assert asked(memo, "s", CLUSTERS) == [0, 1, 2]
    assert asked(memo, "s", CLUSTERS) == []
    again = (EAST, a_cluster("north").labelled(a="b").built(), WEST)
    assert asked(memo, "s", again) == [1]


def test_a_cluster_more_or_less_asks_anew() -> None:
    memo = Memo()
    asked(memo, "s", CLUSTERS)
    assert asked(memo, "s", CLUSTERS[1:]) == [0, 1]


def test_what_was_left_out_is_asked_when_it_is_wanted() -> None:
    memo = Memo()
    assert asked(memo, "s", CLUSTERS, [1]) == [1]
    assert asked(memo, "s", CLUSTERS, [1, 2]) == [2]
    assert asked(memo, "s", CLUSTERS) == [0]


def test_shapes_do_not_share_answers_and_do_not_pile_up() -> None:
    memo = Memo()
    for index in range(200):
        assert asked(memo, f"shape-{index}", CLUSTERS) == [0, 1, 2]
    assert len(memo._kept) == 128
    assert asked(memo, "shape-0", CLUSTERS) == [0, 1, 2]


def test_shapes_that_nobody_asks_about_let_go_of_old_clusters() -> None:
    memo = Memo()
    asked(memo, "old", CLUSTERS)
    for _ in range(600):
        asked(memo, "used", (a_cluster("east").built(), NORTH, WEST))
    assert set(memo._kept) == {"used"}
