"""What `fedctl migrate` writes, and what it refuses."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from federation.api import names
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS
from federation.cli.migrating import Given
from federation.plans.migration import Wish, copies_to_ask_for, moves_with_volumes, refusal, volumes_left
from federation.scheduling.whatif.planresult import Action, MemberObject, MemberPlan, ObjectPlan, Plan

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CLUSTERS = ("east", "north", "west")


def given(to: str = "", leave: str = "", duration: str = "24h", *, is_end: bool = False) -> Given:
    return Given(to, leave, duration, is_end=is_end)


def annotations(wish: Wish) -> dict[str, Any]:
    written: dict[str, str | None] = wish.to_patch()["metadata"]["annotations"]
    return {key: text if text is None else orjson.loads(text) for key, text in written.items()}


def test_a_wish_is_one_annotation_and_its_end_removes_both() -> None:
    to = given("west, east").wish(CLUSTERS, NOW)
    assert annotations(to) == {names.PLACEMENTS: [{"cluster": "east"}, {"cluster": "west"}]}
    leave = given(leave="east", duration="90m").wish(CLUSTERS, NOW)
    avoided = [{"cluster": "east", "validUntil": "2026-01-31T13:30:00Z"}]
    assert annotations(leave) == {names.MIGRATION_CONFIGURATION: {"workloadMigrations": avoided}}
    end = given(is_end=True).wish(CLUSTERS, NOW)
    assert annotations(end) == {names.PLACEMENTS: None, names.MIGRATION_CONFIGURATION: None}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (given(), "give one of --to, --from and --end"),
        (given("west", "east"), "give one of --to, --from and --end"),
        (given("wset"), "--to: there is no cluster 'wset'; did you mean west?"),
        (given(leave="east,x"), "--from: there is no cluster 'x'; known: east, north, west"),
        (given(leave="east", duration="soon"), "--for: "),
        (given(leave="east", duration="0s"), "--for: '0s' is no time; give one such as 2h"),
    ],
)
def test_wrong_options_are_named(wrong: Given, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        wrong.wish(CLUSTERS, NOW)


def planned(after: dict[str, int], **fields: Any) -> Plan:
    rows = [MemberPlan(name, None, MemberObject({}, "", "", replicas)) for name, replicas in after.items()]
    return Plan([ObjectPlan(DEPLOYMENTS, "shop", "web", Action.CHANGE, rows, **fields)])


@pytest.mark.parametrize(
    ("plan", "wish", "expected"),
    [
        (planned({"west": 4}), Wish(to=frozenset({"west"})), ""),
        (planned({"west": 4}), Wish(leaves=frozenset({"east"})), ""),
        (planned({}), Wish(to=frozenset({"west"})), ""),
        (
            planned({"east": 4}, reason="objects in namespace shop may not override their policy"),
            Wish(to=frozenset({"west"})),
            "deployment/web: it stays in east (objects in namespace shop may not override their policy)",
        ),
        (planned({"east": 1, "west": 3}), Wish(leaves=frozenset({"east"})), "deployment/web: it stays in east"),
        (
            planned({"west": 1}, unplaced=3),
            Wish(to=frozenset({"west"})),
            "deployment/web: 3 replicas would be without a cluster",
        ),
        (planned({"west": 1}, unplaced=3, unplaced_before=3), Wish(to=frozenset({"west"})), ""),
        (
            planned({"east": 4}, is_stuck=True, problems=["no cluster is feasible"]),
            Wish(to=frozenset({"west"})),
            "deployment/web: no cluster can take it (no cluster is feasible)",
        ),
    ],
)
def test_a_plan_that_is_not_what_was_wished_is_refused(plan: Plan, wish: Wish, expected: str) -> None:
    assert refusal(plan, wish, {(DEPLOYMENTS, "shop", "web")}) == expected


def test_what_follows_a_workload_may_also_stay() -> None:
    """A ConfigMap with a policy of its own stays in its cluster, and goes along to the new one."""
    rows = [MemberPlan(name, None, MemberObject({}, "", "", 0)) for name in ("east", "west")]
    plan = Plan([*planned({"west": 4}).objects, ObjectPlan(CONFIGMAPS, "shop", "web", Action.CHANGE, rows)])
    assert not refusal(plan, Wish(to=frozenset({"west"})), {(DEPLOYMENTS, "shop", "web")})


def test_data_in_volumes_is_named() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"volumes": [claim]}}},
    }
    stateful = {"kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {"volumeClaimTemplates": [{}]}}
    plain = {"kind": "Deployment", "metadata": {"name": "api"}, "spec": {"template": {"spec": {"containers": []}}}}
    assert volumes_left([deployment, stateful, plain]) == [
        "deployment/web has PersistentVolumeClaim data",
        "statefulset/db has the claims of its volumeClaimTemplates",
    ]


def a_set(*, said: str | None = None, api_version: str = "apps/v1", volumes: tuple[str, ...] = ()) -> dict[str, Any]:
    pods = {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in volumes]}
    metadata: dict[str, Any] = {"name": "db"}
    if said is not None:
        metadata["annotations"] = {names.MOVE_VOLUMES: said}
    spec = {"volumeClaimTemplates": [{}], "template": {"spec": pods}}
    return {"apiVersion": api_version, "kind": "StatefulSet", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("said", "kept"),
    [(None, {}), ("{}", {}), ("[]", {}), ("no JSON", {}), ('{"method": "VolSync"}', {"method": "VolSync"})],
)
def test_copies_are_asked_for_again_with_what_the_user_said_about_the_way(
    said: str | None, kept: dict[str, str]
) -> None:
    written = copies_to_ask_for(a_set(said=said), NOW)[names.MOVE_VOLUMES]
    assert orjson.loads(written or "") == {**kept, "requested": "2026-01-31T12:00:00Z"}


def test_only_the_claims_of_a_stateful_sets_templates_are_copied() -> None:
    asked = a_set(said="{}")
    assert moves_with_volumes(asked)
    assert volumes_left([asked]) == []
    for other in (a_set(said="{}", volumes=("extra",)), a_set(said="{}", api_version="apps.kruise.io/v1beta1")):
        assert copies_to_ask_for(other, NOW) == {}
        assert not moves_with_volumes(other)
        assert len(volumes_left([other])) == 1
