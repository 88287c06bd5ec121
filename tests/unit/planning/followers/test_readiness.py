"""Which followers a workload's write waits for."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.followers.readiness import is_awaited, is_expected, new_dependencies, status_in_cluster
from federation.planning.followers.references import Reference


def a_follower(*, placed: str = "", status: str = "", going: bool = False, **annotations: str) -> dict[str, Any]:
    named = {"dry_run": names.DRY_RUN, "disabled": names.DISABLE_FOLLOWING}
    metadata: dict[str, Any] = {"annotations": {named[key]: value for key, value in annotations.items()}}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    entries = [{"cluster": "west", "status": "OK"}, {"cluster": "east", "status": status}] if status else []
    placements = [{"controller": "c", "placement": [{"cluster": placed}]}] if placed else []
    return {"metadata": metadata, "spec": {"placements": placements}, "status": {"clusters": entries}}


def a_leader(*, follows: bool = True) -> dict[str, Any]:
    return {"metadata": {"annotations": {names.ENABLE_FOLLOWER_SCHEDULING: "true"} if follows else {}}}


@pytest.mark.parametrize(
    ("follower", "leader", "expected"),
    [
        (a_follower(), a_leader(), True),
        (a_follower(), a_leader(follows=False), False),
        (a_follower(placed="east"), a_leader(follows=False), True),
        (a_follower(placed="west"), a_leader(follows=False), False),
        (a_follower(disabled="true"), a_leader(), False),
        (a_follower(disabled="true", placed="east"), a_leader(), True),
        (a_follower(placed="east", going=True), a_leader(), False),
        (a_follower(placed="east", dry_run="true"), a_leader(), False),
        (a_follower(placed="east", dry_run="true", status="OK"), a_leader(), True),
        (a_follower(placed="east", status="AlreadyExists"), a_leader(), False),
        (a_follower(placed="east", status="ManagedLabelFalse"), a_leader(), False),
        (a_follower(placed="east", status="FieldRetentionFailed"), a_leader(), False),
        (a_follower(placed="east", status="UpdateFailed"), a_leader(), True),
    ],
)
def test_a_follower_is_expected_where_it_is_or_will_be_placed(
    follower: dict[str, Any], leader: dict[str, Any], expected: bool
) -> None:
    assert is_expected(follower, leader, "east") is expected


def test_the_status_of_a_cluster_is_that_of_its_entry() -> None:
    assert status_in_cluster(a_follower(status="UpdateFailed"), "east") == "UpdateFailed"
    assert status_in_cluster(a_follower(status="UpdateFailed"), "north") == ""
    assert status_in_cluster({}, "east") == ""


def a_deployment(*secrets: str) -> dict[str, Any]:
    volumes = [{"name": name, "secret": {"secretName": name}} for name in secrets]
    spec = {"template": {"spec": {"containers": [], "volumes": volumes}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_an_existing_object_waits_for_new_dependencies_only() -> None:
    text = '[{"group": "", "kind": "ConfigMap", "name": "listed"}, {"group": "", "kind": "Service", "name": "s"}]'
    federated = {"metadata": {"annotations": {names.FOLLOWERS: text}}}
    both, listed = [Reference("", "Secret", name) for name in "ab"], Reference("", "ConfigMap", "listed")
    assert new_dependencies(federated, a_deployment("a", "b"), None) == sorted([*both, listed])
    assert new_dependencies(federated, a_deployment("a", "b"), a_deployment("a")) == both[1:]
    malformed = {"metadata": {"annotations": {names.FOLLOWERS: "{"}}}
    assert new_dependencies(malformed, a_deployment("a", "b"), None) == both


def a_namespace(name: str = "shop", *clusters: str, status: str = "", **metadata: str) -> dict[str, Any]:
    placement = [{"cluster": cluster} for cluster in clusters]
    return {
        "metadata": {"name": name, **metadata},
        "spec": {
            "template": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            "placements": [{"controller": "c", "placement": placement}],
        },
        "status": {"clusters": [{"cluster": "east", "status": status}] if status else []},
    }


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        (a_namespace("shop", "east"), True),
        (a_namespace("shop", "west"), False),
        (a_namespace("shop"), False),
        (a_namespace("default", "east"), False),
        (a_namespace("kube-system", "east"), False),
        (a_namespace("shop", "east", deletionTimestamp="now"), False),
        (a_namespace("shop", "east", status="CreationFailed"), True),
        (a_namespace("shop", "east", status="AlreadyExists"), False),
        (a_namespace("shop", "east", status="ManagedLabelFalse"), False),
    ],
)
def test_a_namespace_is_awaited_where_it_is_delivered(namespace: dict[str, Any], expected: bool) -> None:
    assert is_awaited(namespace, "east") is expected
