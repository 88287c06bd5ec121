"""What a decision takes away, and the placement while it is held."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.planning.guard.losses import Blame, blame, held_placement, lost_clusters
from federation.scheduling.clustertriggers import LABELS, TAINTS

COUNTS = st.dictionaries(st.sampled_from(["east", "north", "south", "west"]), st.integers(0, 9))


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ({}, {"east": 3}, set()),
        ({"east": 3}, {"east": 3, "west": 1}, set()),
        ({"east": 3, "west": 1}, {"east": 4}, {"west"}),
        ({"east": 5, "west": 5}, {"east": 1, "west": 9}, {"east"}),
        ({"east": None, "west": None}, {"west": None}, {"east"}),
        ({"east": None, "west": None}, {"east": 2, "west": 2}, {"east", "west"}),
        ({"east": 2}, {"east": None}, set()),
    ],
    ids=["first", "added", "removed", "moved", "copy removed", "copies divided", "division copied"],
)
def test_losses(before: Mapping[str, int | None], after: Mapping[str, int | None], lost: set[str]) -> None:
    assert lost_clusters(before, after) == lost


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"replicaCount"}, set()),
        ({"autoMigrationInfo"}, set()),
        ({"ignoredPlugins"}, set()),
        ({"replicaCount", "policyContentHash"}, {Blame.POLICY}),
        ({"policyName", "profileHash"}, {Blame.POLICY, Blame.PROFILE}),
        ({TAINTS}, {Blame.CLUSTERS}),
        ({LABELS, "policyContentHash"}, {Blame.CLUSTERS, Blame.POLICY}),
        (set(), {Blame.CLUSTERS, Blame.TYPE}),
    ],
    ids=["scaled", "migrated", "plugin back", "policy", "policy and profile", "taint", "label and policy", "unknown"],
)
def test_the_changed_triggers_say_what_is_to_blame(changed: set[str], expected: set[Blame]) -> None:
    assert blame(changed, {"east": 3}) == expected


def test_copies_that_are_suddenly_divided_are_counted_for_their_type() -> None:
    assert blame({"replicaCount"}, {"east": None}) == {Blame.TYPE}
    assert blame({"replicaCount", "schedulingAnnotationsHash"}, {"east": None}) == set()


def test_copies_stay_and_only_further_ones_are_added() -> None:
    assert held_placement({"east": None}, {"west": None}, 4) == {"east": None}
    two = {"west": None, "north": None}
    assert held_placement({"east": None}, two, 4) == {"east": None, "west": None}
    assert held_placement({"east": None}, {"east": None, **two}, 4) == {"east": None, **two}


def test_copies_that_would_be_divided_get_no_replicas_in_further_clusters() -> None:
    assert held_placement({"north": None}, {"north": 1, "east": 1}, 2) == {"north": None}


@given(before=COUNTS, after=COUNTS, growth=st.integers(0, 20))
def test_nothing_moves_while_a_decision_is_held(before: dict[str, int], after: dict[str, int], growth: int) -> None:
    wanted = sum(after.values()) + growth  # a decision may leave replicas unplaced
    held = held_placement(before, after, wanted)
    counts = {name: count or 0 for name, count in held.items()}
    for name in before.keys() | after.keys():
        low, high = sorted((before.get(name, 0), after.get(name, 0)))
        assert low <= counts.get(name, 0) <= high
    if wanted >= sum(before.values()):
        assert all(counts.get(name, 0) >= count for name, count in before.items())
        assert sum(counts.values()) == max(sum(before.values()), sum(after.values()))
    else:
        assert sum(counts.values()) == wanted
