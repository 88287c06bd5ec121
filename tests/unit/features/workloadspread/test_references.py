"""Which WorkloadSpread manages a pod."""

from typing import Any

import pytest
from tests.support.spreads import CLONE_SET, REPLICA_SET, a_spread, among, drive, with_controller

from federation.apimachinery.errors import InvalidInput
from federation.features.workloadspread.rules.references import find_spread, is_managed, parse_whitelist

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
SPREAD = a_spread([{"name": "a"}], "Deployment")
POD = {"metadata": {"labels": {"app": "web"}, "ownerReferences": [REPLICA_SET]}, "spec": {}}
GAME_SERVERS = (
    '{"workloads":[{"Group":"game.io","Version":"v1","Kind":"GameServerSet","replicasPath":"spec.size",'
    '"subResources":[{"Group":"game.io","Version":"v1","Kind":"GameServer"}]}]}'
)


def _owned(owner: dict[str, Any] | None) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [owner] if owner else []}}


def test_a_pod_of_a_deployment_is_found_through_its_replica_set() -> None:
    assert drive(find_spread(among(SPREAD), POD), [_owned(DEPLOYMENT)]) is SPREAD
    assert drive(find_spread(among(SPREAD), POD), [_owned({**DEPLOYMENT, "name": "other"}), _owned(None)]) is None


def test_the_nearest_target_wins() -> None:
    near = a_spread([{"name": "a"}], "ReplicaSet", targetRef={**REPLICA_SET})
    assert drive(find_spread(among(SPREAD, near), POD)) is near


def test_pods_of_an_unlisted_kind_are_not_managed_even_by_their_target() -> None:
    owner = {"apiVersion": "game.io/v1", "kind": "GameServerSet", "name": "web", "controller": True}
    spread = a_spread([{"name": "a"}], "GameServerSet", targetRef=owner)
    assert drive(find_spread(among(spread), _owned(owner))) is None
    assert drive(find_spread(among(spread), _owned(owner), parse_whitelist(GAME_SERVERS))) is spread


def test_a_controller_that_cannot_be_read_ends_the_search() -> None:
    assert drive(find_spread(among(SPREAD), POD), [None]) is None


def test_a_controller_of_an_unmanaged_kind_ends_the_search() -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "App", "name": "web", "controller": True}
    assert drive(find_spread(among(SPREAD), POD), [_owned(unknown), _owned(DEPLOYMENT)]) is None


def test_a_cycle_of_controllers_ends() -> None:
    assert drive(find_spread(among(SPREAD), POD), [_owned(REPLICA_SET)] * 100) is None


@pytest.mark.parametrize(
    "pod",
    [
        {},
        {"metadata": {"ownerReferences": [{**REPLICA_SET, "controller": False}]}},
        {**POD, "status": {"phase": "Succeeded"}},
        {"metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        with_controller({}, {"apiVersion": "v1", "kind": "Node", "name": "node-1", "controller": True}),
    ],
    ids=["bare", "no controller", "ended", "terminating", "unmanaged"],
)
def test_other_pods_need_no_read(pod: dict[str, Any]) -> None:
    with pytest.raises(StopIteration) as found:
        next(find_spread(among(SPREAD), pod))
    assert found.value.value is None


def test_a_selector_that_does_not_match_is_no_candidate() -> None:
    other = a_spread([{"name": "a"}], "Deployment", targetFilter={"selector": {"matchLabels": {"app": "db"}}})
    assert drive(find_spread(among(other), POD), [_owned(DEPLOYMENT)]) is None
    assert drive(find_spread(among(other, SPREAD), POD), [_owned(DEPLOYMENT)]) is SPREAD


def test_custom_workloads_are_managed_when_they_are_listed() -> None:
    whitelist = parse_whitelist(GAME_SERVERS)
    for kind in ("GameServerSet", "GameServer"):
        assert is_managed({"apiVersion": "game.io/v2", "kind": kind}, whitelist)
        assert not is_managed({"apiVersion": "game.io/v2", "kind": kind})
    assert whitelist.has_workload("game.io", "GameServerSet")
    assert not whitelist.has_workload("game.io", "GameServer")
    assert whitelist.replicas_path("game.io/v1", "GameServerSet") == "spec.size"
    assert whitelist.replicas_path("game.io/v2", "GameServerSet") == ""
    assert is_managed(CLONE_SET)
    assert not is_managed({"kind": "StatefulSet"}), "the core group has none"


def test_a_listed_kind_without_a_group_is_one_of_the_core_group() -> None:
    whitelist = parse_whitelist('{"workloads":[{"Version":"v1","Kind":"Box","replicasPath":"spec.size"}]}')
    assert is_managed({"apiVersion": "v1", "kind": "Box"}, whitelist)
    assert whitelist.has_workload("", "Box")
    assert whitelist.replicas_path("v1", "Box") == "spec.size"


@pytest.mark.parametrize(
    "text", ["", "[]", '{"workloads":{"a":1}}', '{"workloads":[1]}', '{"workloads":[{"subResources":["x"]}]}']
)
def test_a_malformed_whitelist_is_an_error(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_whitelist(text)
