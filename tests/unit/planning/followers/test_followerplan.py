"""The patches of followers, and when followers leave a cluster."""

from typing import Any

import orjson
import pytest

from federation.api import names
from federation.planning.followers.followerplan import clusters_still_needed, has_recorded_kept, plan_following
from federation.planning.followers.orphaned import to_annotation
from federation.planning.followers.references import Identity

STAGES = ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))
WEB = Identity("apps", "Deployment", "default", "web")
WEST = frozenset(("west",))


def _follower(pending: Any = (), **annotations: str) -> dict[str, Any]:
    text = orjson.dumps(pending).decode()
    metadata = {"name": "any", "resourceVersion": "7", "annotations": {names.PENDING_CONTROLLERS: text, **annotations}}
    return {"metadata": metadata, "spec": {"template": {}}}


def _pending(follower: dict[str, Any]) -> Any:
    patch = plan_following(follower, STAGES, {WEB}, ["east"], {}, leaders_max=9)
    assert patch is not None
    return patch["metadata"].get("annotations", {}).get(names.PENDING_CONTROLLERS)


def test_one_patch_places_and_names_the_leader() -> None:
    patch = plan_following(_follower(), STAGES, {WEB}, ["west", "east"], {}, leaders_max=9)
    assert patch is not None
    placement = [{"cluster": "east"}, {"cluster": "west"}]
    assert patch["spec"] == {
        "placements": [{"controller": names.FOLLOWER_CONTROLLER, "placement": placement}],
        "follows": [{"group": "apps", "kind": "Deployment", "namespace": "default", "name": "web"}],
    }
    assert patch["metadata"]["resourceVersion"] == "7"


def test_overrides_are_computed_again_for_new_clusters_before_anything_is_dispatched() -> None:
    override = f'[["{names.OVERRIDE_CONTROLLER}"]]'
    assert _pending(_follower()) == override
    assert _pending(_follower([[names.OVERRIDE_CONTROLLER]])) is None
    assert _pending(_follower([[names.GLOBAL_SCHEDULER], [names.OVERRIDE_CONTROLLER]])) is None
    both = f'[["{names.GLOBAL_SCHEDULER}"],["{names.OVERRIDE_CONTROLLER}"]]'
    assert _pending(_follower([[names.GLOBAL_SCHEDULER]])) == both


def test_an_object_without_overrides_starts_no_stage() -> None:
    assert _pending(_follower([], **{names.IDLE_CONTROLLERS: names.OVERRIDE_CONTROLLER})) is None


def test_an_object_without_leaders_loses_its_follower_fields() -> None:
    follower = _follower()
    follower["spec"]["follows"] = [{"group": "apps", "kind": "Deployment", "namespace": "default", "name": "web"}]
    entry = {"controller": names.FOLLOWER_CONTROLLER, "placement": [{"cluster": "east"}]}
    follower["spec"]["placements"] = [entry]
    patch = plan_following(follower, STAGES, set(), [], {}, leaders_max=9)
    assert patch is not None
    assert patch["spec"] == {"placements": [], "follows": None}
    assert patch["metadata"]["annotations"][names.DEPARTED_CLUSTERS] == '["east"]'


def _leader(status: str = "OK", *, synced: int = 3, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "web-deployments.apps", "generation": 3, "annotations": annotations},
        "spec": {"placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "west"}]}]},
        "status": {"syncedGeneration": synced, "clusters": [{"cluster": "west", "status": status}]},
    }


@pytest.mark.parametrize(
    ("leader", "is_needed"),
    [
        (_leader(), False),
        (_leader("WaitingForRemoval"), True),
        (_leader("ClusterNotReady"), True),
        (_leader(synced=2), True),
        (_leader(**{names.DEPARTED_CLUSTERS: '["west"]'}), True),
        (_leader(**{names.DEPARTED_CLUSTERS: '["east"]'}), False),
        (_leader(**{names.FOLLOWERS: "["}), True),
    ],
    ids=["settled", "leaving", "not ready", "not yet dispatched", "departed", "departed elsewhere", "unreadable list"],
)
def test_a_follower_stays_while_a_member_object_of_its_leader_may_need_it(
    leader: dict[str, Any], *, is_needed: bool
) -> None:
    assert clusters_still_needed(WEST, leader) == (WEST if is_needed else frozenset())


def test_a_follower_stays_while_its_leader_is_being_deleted() -> None:
    leader = _leader()
    leader["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert clusters_still_needed(WEST, leader) == WEST


def test_a_follower_has_recorded_a_leader_with_all_clusters_or_need_not_stay() -> None:
    noted = _follower(**{names.KEPT_FOR: to_annotation({WEB: WEST}) or ""})
    noted["metadata"]["namespace"] = "default"
    assert has_recorded_kept(noted, WEB, WEST)
    assert not has_recorded_kept(noted, WEB, WEST | {"east"})
    assert not has_recorded_kept(_follower(), WEB, WEST)
    assert has_recorded_kept(_follower(), WEB, frozenset())
    assert has_recorded_kept(None, WEB, WEST)
    assert has_recorded_kept(_follower(**{names.DISABLE_FOLLOWING: "true"}), WEB, WEST)
    going = _follower()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert has_recorded_kept(going, WEB, WEST)
