"""What a workload says about followers that its clusters do not have."""

from typing import Any

import pytest

from federation.delivery.rules.status import ClusterStatus
from federation.planning.followers.references import Identity
from federation.planning.followers.undelivered import describe_undelivered, refusals

SETTINGS = Identity("", "ConfigMap", "shop", "settings")
ADOPT = "pods use the one that was there before; take it over with fedctl adopt configmap/settings -n shop"
WHY = "see fedctl why configmap/settings -n shop"


def a_follower(**statuses: str) -> dict[str, Any]:
    return {"status": {"clusters": [{"cluster": name, "status": status} for name, status in statuses.items()]}}


def describe(follower: dict[str, Any] | None, *clusters: str) -> str:
    return describe_undelivered({SETTINGS: frozenset(clusters)}, lambda _: follower)


@pytest.mark.parametrize(
    ("follower", "expected"),
    [
        (None, ""),
        ({}, ""),
        (a_follower(east="OK", west="PendingCreate", north="ClusterNotReady"), ""),
        (a_follower(south="AlreadyExists"), ""),
        (
            a_follower(east="AlreadyExists", west="AlreadyExists", north="OK"),
            f"ConfigMap settings is not the host's in east, west (AlreadyExists): {ADOPT}",
        ),
        (
            a_follower(east="CreationFailed"),
            f"ConfigMap settings is not the host's in east (CreationFailed): {WHY}",
        ),
        (
            a_follower(east="AlreadyExists", west="UpdateFailed"),
            (
                f"ConfigMap settings is not the host's in east (AlreadyExists): {ADOPT};"
                f" ConfigMap settings is not the host's in west (UpdateFailed): {WHY}"
            ),
        ),
    ],
)
def test_a_refused_follower_is_named_in_the_clusters_of_its_leader(
    follower: dict[str, Any] | None, expected: str
) -> None:
    assert describe(follower, "east", "west", "north") == expected


def test_many_followers_and_clusters_are_counted() -> None:
    clusters = [f"c{number}" for number in range(7)]
    text = describe(a_follower(**dict.fromkeys(clusters, "AlreadyExists")), *clusters)
    assert "in c0, c1, c2, c3, c4 and 2 more (AlreadyExists)" in text
    followers = {SETTINGS._replace(name=f"s{number}"): frozenset(("c0",)) for number in range(7)}
    text = describe_undelivered(followers, lambda _: a_follower(c0="AlreadyExists"))
    assert text.endswith("; and 2 more")
    assert text.count("AlreadyExists") == 5


@pytest.mark.parametrize("status", list(ClusterStatus))
def test_only_what_somebody_has_to_resolve_is_refused(status: ClusterStatus) -> None:
    passing = {"DeliverySuspended", "Drifted", "OK", "Kept", "Finished", "RetrievalFailed", "FinalizerCheckFailed"}
    passing.add("QuotaExceeded")
    ends_by_itself = (
        status in passing
        or status.startswith(("Waiting", "Pending", "Cluster", "Deletion", "LabelRemoval", "Client", "Cached"))
        or status.endswith(("Pending", "TimedOut"))
    )
    assert bool(refusals(a_follower(east=status))) is not ends_by_itself
