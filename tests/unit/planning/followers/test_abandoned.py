"""Followers count when a policy takes them from a workload that stays, and in no other case."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.planning.followers.abandoned import abandoned_clusters, causes_of, is_following
from federation.planning.followers.references import Identity
from federation.planning.guard.ledger import Cause, parse_cause

TYPES = {(t.resource.group, t.resource.kind): t for t in map(from_config, default_type_configs())}
SETTINGS = Identity("", "ConfigMap", "default", "settings")
BOTH = frozenset({"east", "west"})


def _find_type(group: str, kind: str) -> FederatedType | None:
    return TYPES.get((group, kind))


def _leader(**annotations: str) -> dict[str, Any]:
    """Return a workload in east that reads its environment from `settings`."""
    template = a_deployment("web")
    template["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    placements = [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]
    metadata = {"name": "web-deployments.apps", "namespace": "default", "annotations": annotations}
    return {"metadata": metadata, "spec": {"template": template, "placements": placements}}


def _abandoned(leader: dict[str, Any], follower: Identity = SETTINGS) -> set[str]:
    return set(abandoned_clusters(BOTH, follower, leader, TYPES["apps", "Deployment"], _find_type, lambda _: None))


@pytest.mark.parametrize("annotations", [{names.ENABLE_FOLLOWER_SCHEDULING: "false"}, {}])
def test_a_follower_that_a_policy_takes_from_a_workload_is_abandoned_where_that_stays(
    annotations: dict[str, str],
) -> None:
    assert _abandoned(_leader(**annotations)) == {"east"}


def test_what_users_change_themselves_abandons_nothing() -> None:
    assert _abandoned(_leader(), Identity("", "ConfigMap", "default", "other")) == set()
    assert _abandoned(_leader(**{names.ENABLE_FOLLOWER_SCHEDULING: "true"})) == set()
    assert _abandoned(_leader(**{names.NO_SCHEDULING: "true"})) == set()
    deleted = _leader()
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert _abandoned(deleted) == set()


def test_followers_count_for_their_namespace_and_for_all() -> None:
    follower = {"metadata": {"namespace": "shop"}, "spec": {"template": {"apiVersion": "v1", "kind": "Secret"}}}
    causes = causes_of(follower)
    assert [str(cause) for cause in causes] == ["Following shop/Secret", "Following Secret"]
    assert [parse_cause(str(cause)) for cause in causes] == list(causes)
    assert all(map(is_following, causes))
    assert not is_following(Cause("PropagationPolicy", "shop", "web"))
