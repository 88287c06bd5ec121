"""The conditions Scheduled and Propagated of source objects."""

from datetime import UTC, datetime
from typing import Any

import orjson

from federation.api import names
from federation.planning.status.sourceconditions import (
    describe_missing_policy,
    is_undelivered,
    source_conditions,
    unscheduled_since,
    with_source_conditions,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_federated(
    *, placed: tuple[str, ...] = (), clusters: dict[str, str] | None = None, **conditions: tuple[str, str, str]
) -> dict[str, Any]:
    """A federated object with conditions given as status, reason and message."""
    text = orjson.dumps({"placement": dict.fromkeys(placed, 1)}).decode()
    return {
        "metadata": {"annotations": {names.SCHEDULING: text} if placed else {}},
        "status": {
            "clusters": [{"cluster": name, "status": status} for name, status in (clusters or {}).items()],
            "conditions": [
                {"type": type_, "status": status, "reason": reason, "message": message}
                for type_, (status, reason, message) in conditions.items()
            ],
        },
    }


def shown(federated: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in source_conditions(federated)}


def test_a_delivered_object_names_its_clusters() -> None:
    federated = a_federated(placed=("east", "west"), clusters={"east": "OK", "west": "OK"}, Propagated=("True", "", ""))
    assert shown(federated) == {
        "Scheduled": ("True", "Scheduled", "east 1, west 1"),
        "Propagated": ("True", "Propagated", "in east, west"),
    }
    assert not is_undelivered(federated)


def test_nothing_is_said_before_the_first_decision() -> None:
    assert shown(a_federated()) == {}
    assert not is_undelivered(a_federated())


def test_an_object_that_no_policy_selects_says_so_twice() -> None:
    text = describe_missing_policy("shop")
    federated = a_federated(Propagated=("False", "NoPolicy", text))
    assert shown(federated) == {"Scheduled": ("False", "NoPolicy", text), "Propagated": ("False", "NoPolicy", text)}
    assert is_undelivered(federated)
    assert "kubeadmiral.io/propagation-policy-name=NAME" in text
    assert describe_missing_policy("").startswith("no ClusterPropagationPolicy selects it")


def test_a_cluster_that_refuses_the_object_is_named_with_its_error() -> None:
    message = "west: CreationFailed (quota exceeded)"
    federated = a_federated(
        placed=("east", "west"),
        clusters={"east": "OK", "west": "CreationFailed"},
        Propagated=("False", "CheckClusters", message),
    )
    assert shown(federated)["Propagated"] == ("False", "CheckClusters", message)
    assert is_undelivered(federated)


def test_a_delivery_under_way_is_no_failure() -> None:
    under_way = a_federated(
        placed=("east",), clusters={"east": "PendingCreate"}, Propagated=("False", "CheckClusters", "")
    )
    assert not is_undelivered(under_way)


def test_times_change_with_the_status_only() -> None:
    federated = a_federated(Propagated=("False", "NoPolicy", "none"))
    first = with_source_conditions({}, {}, federated, NOW)
    later = datetime(2026, 1, 1, 13, tzinfo=UTC)
    again = with_source_conditions({"conditions": [{"type": "Available"}]}, first, federated, later)
    assert again["conditions"][0] == {"type": "Available"}
    assert [c["lastTransitionTime"] for c in again["conditions"][1:]] == ["2026-01-01T12:00:00Z"] * 2
    assert unscheduled_since(first, federated, later) == NOW
    assert unscheduled_since({}, federated, later) == later
    placed = a_federated(placed=("east",), clusters={"east": "OK"}, Propagated=("True", "", ""))
    assert unscheduled_since(first, placed, later) is None


def test_followers_are_named_only_while_a_cluster_refuses_one() -> None:
    text = "ConfigMap settings is not the host's in east"
    refused = a_federated(Propagated=("True", "", ""), FollowersDelivered=("False", "CheckFollowers", text))
    assert shown(refused)["FollowersDelivered"] == ("False", "CheckFollowers", text)
    present = with_source_conditions({}, {}, refused, NOW)
    resolved = a_federated(Propagated=("True", "", ""), FollowersDelivered=("True", "FollowersDelivered", ""))
    after = with_source_conditions(present, present, resolved, NOW)
    assert [condition["type"] for condition in after["conditions"]] == ["Propagated"]
