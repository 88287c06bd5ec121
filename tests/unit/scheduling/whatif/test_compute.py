"""Plans: placements before and after, reasons, unplaced replicas, and free resources of clusters."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.manifests import a_policy, an_override
from tests.support.whatif import a_cluster, a_source, a_world, change, plan

from federation.api import names
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DISRUPTION_BUDGETS,
    DELIVERY_SUSPENSIONS,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object, Resource
from federation.planning.failover.failoveroptions import FailoverOptions
from federation.planning.failover.halts import HaltOptions
from federation.planning.failover.pace import PaceOptions
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.guard.ledger import GuardOptions
from federation.scheduling.hostlimits import Limits
from federation.scheduling.triggerwords import describe_deferral
from federation.scheduling.whatif.changes import as_down, with_label, with_taint, without_taint
from federation.scheduling.whatif.planresult import Action, ObjectPlan, to_json
from federation.scheduling.whatif.state import ObjectChange, ObjectSet

CLUSTERS = ("east", "west")
FREE: dict[str, Any] = {"reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {}}}


def a_usual_world(replicas: int = 6, **spec: Any) -> ObjectSet:
    policy = a_policy({"east": 1, "west": 1}, **{**FREE, **spec})
    return a_world(map(a_cluster, CLUSTERS), [policy], sources=[a_source("web", replicas)])


def cluster(world: ObjectSet, name: str) -> Object:
    found = world.get(FEDERATED_CLUSTERS, "", name)
    assert found is not None
    return found


def replicas(obj: ObjectPlan) -> dict[str, tuple[int | None, int | None]]:
    return {row.cluster: (row.before and row.before.replicas, row.after and row.after.replicas) for row in obj.rows}


def test_replicas_and_free_resources_move_with_the_weights() -> None:
    world = a_usual_world()
    result = plan(world, change(world, PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}, **FREE)))
    (obj,) = result.objects
    assert (obj.action, obj.target, obj.is_placed_otherwise) == (Action.CHANGE, "deployment/web", True)
    assert replicas(obj) == {"east": (3, 4), "west": (3, 2)}
    assert result.summary()["replicasMoved"] == 1
    differences = {(each.cluster, each.resource): each.after - each.before for each in result.cluster_resources}
    assert differences == {("east", "cpu"): -500, ("west", "cpu"): 500}


def test_a_new_source_is_created_a_deleted_one_leaves_every_cluster() -> None:
    world = a_usual_world()
    result = plan(world, ObjectChange(DEPLOYMENTS, "default", "new", None, a_source("new", 2)))
    (obj,) = result.changed
    assert (obj.action, replicas(obj)) == (Action.CREATE, {"east": (None, 1), "west": (None, 1)})
    result = plan(world, ObjectChange(DEPLOYMENTS, "default", "web", a_source("web"), None))
    (obj,) = result.changed
    assert (obj.action, replicas(obj)) == (Action.DELETE, {"east": (3, None), "west": (3, None)})
    assert result.summary()["replicasStopped"] == 6


def test_a_deleted_namespace_deletes_its_objects_and_a_deleted_cluster_keeps_them() -> None:
    world = a_usual_world()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    result = plan(world, ObjectChange(NAMESPACES, "", "default", namespace, None))
    (obj,) = [obj for obj in result.changed if obj.resource == DEPLOYMENTS]
    assert (obj.action, replicas(obj)) == (Action.DELETE, {"east": (3, None), "west": (3, None)})
    for annotations, fate in (({}, "stays"), ({names.CASCADING_DELETE: "true"}, "is deleted")):
        leaving = a_cluster("east")
        leaving["metadata"]["annotations"] = annotations
        result = plan(world, ObjectChange(FEDERATED_CLUSTERS, "", "east", leaving, None))
        assert f"east leaves the federation; what the federation put there {fate} there" in result.problems


def test_an_object_that_is_not_federated_is_reported() -> None:
    world = a_usual_world()
    source = a_source("new", 2, **{names.NO_FEDERATED_RESOURCE: "1"})
    result = plan(world, ObjectChange(DEPLOYMENTS, "default", "new", None, source))
    assert result.changed == []
    assert result.problems == [
        f"Deployment new in default: not federated, because it has the annotation {names.NO_FEDERATED_RESOURCE}"
    ]


def test_a_taint_moves_replicas_and_its_removal_moves_none_back() -> None:
    world = a_usual_world()
    tainted = with_taint(cluster(world, "east"), "down", "", "NoExecute")
    result = plan(world, change(world, FEDERATED_CLUSTERS, tainted))
    assert replicas(result.objects[0]) == {"east": (3, None), "west": (3, 6)}
    assert without_taint(tainted, "down", "NoSchedule") == tainted
    assert without_taint(tainted, "down") == cluster(world, "east")


def test_a_change_that_the_policy_ignores_is_deferred_and_named() -> None:
    world = a_usual_world()
    labelled = with_label(cluster(world, "east"), "tier", "gold")
    result = plan(world, change(world, FEDERATED_CLUSTERS, labelled))
    assert [(obj.action, obj.reason) for obj in result.objects] == [
        (Action.NONE, f"not rescheduled: {describe_deferral('clusterLabelsChanged:false')}")
    ]


def test_a_cluster_that_is_down_keeps_its_objects_and_gets_no_new_ones() -> None:
    world = a_usual_world()
    down = change(world, FEDERATED_CLUSTERS, as_down(cluster(world, "east")))
    result = plan(world, down)
    assert result.changed == []
    assert [(s.cluster, s.objects, s.replicas) for s in result.stranded] == [("east", 1, 3)]
    result = plan(world, down, ObjectChange(DEPLOYMENTS, "default", "new", None, a_source("new", 2)))
    assert replicas(result.changed[0]) == {"west": (None, 2)}


def test_replicas_without_a_place_are_counted() -> None:
    limited = a_policy({"east": 1, "west": 1}, **FREE)
    for entry in limited["spec"]["placement"]:
        entry["preferences"]["maxReplicas"] = 2
    world = a_usual_world()
    result = plan(world, change(world, PROPAGATION_POLICIES, limited))
    (obj,) = result.objects
    assert (obj.unplaced, obj.unplaced_before, result.summary()["unplaced"]) == (2, 0, 2)
    nowhere = a_policy({"north": 1}, **FREE)
    result = plan(world, change(world, PROPAGATION_POLICIES, nowhere))
    (obj,) = result.objects
    assert obj.action is Action.NONE
    assert obj.reason.startswith("0/2 clusters are available")
    assert result.summary()["stuck"] == 1


def test_replicas_that_fit_on_no_node_are_reported() -> None:
    nodes = {"labels": {}, "largest": {"cpu": "1"}, "free": [{"nodes": 2, "resources": {"cpu": "1", "pods": "9"}}]}
    clusters = [a_cluster(name) for name in CLUSTERS]
    for obj in clusters:
        obj["status"]["resources"] = {"allocatable": {"cpu": "2"}, "available": {"cpu": "2"}, "nodeClasses": [nodes]}
    clusters[1]["status"]["resources"] |= {"available": {"cpu": "500m"}, "waiting": {"cpu": "1500m"}}
    world = a_world(clusters, [a_policy({"east": 1, "west": 1}, **FREE)])
    result = plan(world, ObjectChange(DEPLOYMENTS, "default", "new", None, a_source("new", 10)))
    (obj,) = result.changed
    assert (obj.waiting, result.summary()["waiting"], obj.unplaced) == (2, 2, 0)
    assert [row.note for row in obj.rows] == ["1 fit on no node now", "1 fit on no node now"]
    assert obj.reason.endswith("2 of 10 replicas fit on no node and wait in members")
    assert [(each.before, each.after) for each in result.cluster_resources] == [(2000, -500), (500, -2000)]


def test_an_override_changes_the_content_of_one_cluster() -> None:
    world = a_usual_world()
    result = plan(world, change(world, OVERRIDE_POLICIES, an_override("west", "/spec/minReadySeconds", 5)))
    (obj,) = result.objects
    assert [(row.cluster, row.is_changed, row.delta) for row in obj.rows] == [("east", False, 0), ("west", True, 0)]
    after = obj.rows[1].after
    assert after is not None
    assert after.manifest["spec"]["minReadySeconds"] == 5
    assert names.TEMPLATE_HASH not in after.manifest["metadata"].get("annotations", {})


def test_an_override_that_cannot_be_computed_holds_its_cluster_only() -> None:
    world = a_usual_world()
    override = an_override("west", "/spec/x", 1)
    override["spec"]["overrideRules"][0]["overriders"] = {"image": [{"operations": [{"operator": "boil"}]}]}
    made = change(world, OVERRIDE_POLICIES, override)
    (obj,) = plan(world, made).objects
    assert obj.action is Action.NONE
    assert "its overrides cannot be computed" in obj.problems[0]
    new = ObjectChange(DEPLOYMENTS, "default", "new", None, a_source("new", 2))
    obj = next(obj for obj in plan(world, made, new).objects if obj.name == "new")
    assert obj.action is Action.CREATE
    errors = {row.cluster: row.after.error for row in obj.rows if row.after is not None}
    assert errors["east"] == ""
    assert "imageComponent" in errors["west"]


def test_members_that_scale_an_object_themselves_keep_their_replicas() -> None:
    policy = a_policy({"east": 1, "west": 1}, **FREE)
    source = a_source("web", 6, **{names.RETAIN_REPLICAS: "true"})
    world = a_world(map(a_cluster, CLUSTERS), [policy], sources=[source])
    more = a_source("web", 10, 2, **{names.RETAIN_REPLICAS: "true"})
    assert plan(world, ObjectChange(DEPLOYMENTS, "default", "web", source, more)).changed == []


def test_a_policy_that_is_malformed_leaves_the_one_before_in_force() -> None:
    world = a_usual_world()
    broken = a_policy({"east": 1}, **FREE)
    broken["spec"]["resourceSelectors"][0]["labelSelector"] = {"matchExpressions": [{"key": "a", "operator": "?"}]}
    result = plan(world, change(world, PROPAGATION_POLICIES, broken))
    assert result.changed == []
    assert result.problems[0].startswith("PropagationPolicy divide is not taken over")


def test_a_profile_concerns_the_objects_whose_policies_name_it() -> None:
    world = a_usual_world(schedulingProfile="gpu")
    assert plan(world, is_everything=True).objects[0].reason == (
        "SchedulingProfile gpu of PropagationPolicy default/divide does not exist"
    )
    profile = {"metadata": {"name": "gpu"}, "spec": {}}
    result = plan(world, change(world, SCHEDULING_PROFILES, profile))
    assert result.summary()["replicasStarted"] == 6
    webhook = {"metadata": {"name": "ClusterReady"}, "spec": {}}
    result = plan(world, change(world, SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, webhook))
    assert result.problems == ["webhook 'ClusterReady': an installed plugin has this name"]


def test_several_changes_that_decide_together_come_with_a_warning() -> None:
    world = a_usual_world()
    tainted = with_taint(cluster(world, "east"), "down", "", "NoExecute")
    scaled = ObjectChange(DEPLOYMENTS, "default", "web", a_source("web"), a_source("web", 8, 2))
    result = plan(world, change(world, FEDERATED_CLUSTERS, tainted), scaled)
    assert "made one after the other, the changes may place replicas differently" in result.problems[0]


def test_the_json_form_has_manifests_and_reasons() -> None:
    world = a_usual_world()
    heavier = change(world, PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}, **FREE))
    form = to_json(plan(world, heavier, is_explained=True))
    (obj,) = form["objects"]
    assert (obj["kind"], obj["name"], obj["action"]) == ("Deployment", "web", "change")
    assert obj["explanation"]["because"] == ("policyContentHash",)
    assert not to_json(plan(world, heavier))["objects"][0].get("explanation")
    assert [c["after"]["manifest"]["spec"]["replicas"] for c in obj["clusters"]] == [4, 2]
    assert form["clusters"][0] == {
        "cluster": "east",
        "resources": {"cpu": {"allocatable": 100000, "availableBefore": 100000, "availableAfter": 99500}},
    }


def test_a_plan_names_the_waves_in_which_clusters_get_a_new_pod_template() -> None:
    waves = [{"name": "canary", "clusters": ["west"]}]
    world = a_usual_world(rollout={"waves": waves})
    source = a_source("web")
    source["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    (obj,) = plan(world, change(world, DEPLOYMENTS, source)).changed
    assert obj.waves == [("canary", ["west"]), ("remaining", ["east"])]
    result = plan(world, change(world, DEPLOYMENTS, source))
    assert to_json(result)["objects"][0]["waves"] == [
        {"name": "canary", "clusters": ["west"]},
        {"name": "remaining", "clusters": ["east"]},
    ]
    # Replicas do not wait for waves.
    (obj,) = plan(world, change(world, DEPLOYMENTS, a_source("web", 8))).changed
    assert list(obj.waves) == []


def test_an_override_policy_that_cannot_be_read_is_a_problem() -> None:
    world = a_usual_world()
    odd = an_override("east", "/spec/paused", True, name="odd")
    odd["spec"]["resourceSelectors"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchExpressions": [{"operator": "Odd"}]}}
    ]
    result = plan(world, change(world, OVERRIDE_POLICIES, odd))
    assert any("OverridePolicy odd" in problem for problem in result.problems)
    assert not any("OverridePolicy" in problem for problem in plan(a_usual_world()).problems)


def test_a_taint_takes_the_place_of_one_with_the_same_key_and_effect_only() -> None:
    first = with_taint({"metadata": {"name": "east"}, "spec": {}}, "down", "1", "NoExecute")
    for key, effect in (("down", "NoSchedule"), ("other", "NoExecute")):
        first = with_taint(first, key, "", effect)
    again = with_taint(first, "down", "2", "NoExecute")
    assert again["spec"]["taints"] == [
        {"key": "down", "effect": "NoSchedule"},
        {"key": "other", "effect": "NoExecute"},
        {"key": "down", "effect": "NoExecute", "value": "2"},
    ]
    assert without_taint(again, "down", "NoExecute")["spec"]["taints"] == again["spec"]["taints"][:2]
    assert without_taint(again, "down")["spec"]["taints"] == [{"key": "other", "effect": "NoExecute"}]


def test_a_cluster_that_does_not_go_down_strands_nothing() -> None:
    world = a_usual_world()
    up = cluster(world, "east")
    assert plan(world, change(world, FEDERATED_CLUSTERS, with_label(up, "a", "b"))).stranded == []
    down = a_world(
        [as_down(a_cluster("east")), a_cluster("west")],
        [a_policy({"east": 1, "west": 1})],
        sources=[a_source("web", 6)],
    )
    labelled = with_label(cluster(down, "east"), "a", "b")
    for after in (labelled, up):
        assert plan(down, change(down, FEDERATED_CLUSTERS, after)).stranded == []


def a_hold(resource: Resource, spec: Mapping[str, Any], namespace: str = "") -> ObjectChange:
    metadata = {"name": "sale", **({"namespace": namespace} if namespace else {})}
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    return ObjectChange(resource, namespace, "sale", None, obj)


ALWAYS = [{"start": "2020-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z"}]
FREEZE = {"reason": "the sale", "windows": ALWAYS, "clusterSelector": {"matchLabels": {"tier": "prod"}}}
IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}}


def notes(world: ObjectSet, *changes: ObjectChange) -> dict[str, str]:
    return {row.cluster: row.note for obj in plan(world, *changes).changed for row in obj.rows}


def a_frozen_world(hold: ObjectChange) -> ObjectSet:
    clusters = [a_cluster("east", tier="prod"), a_cluster("west")]
    world = a_world(clusters, [a_policy({"east": 1, "west": 1}, **FREE)], sources=[a_source("web", 6)])
    return world.with_changes([hold])


def test_a_plan_names_the_freeze_that_holds_updates_and_not_scaling() -> None:
    world, source = a_frozen_world(a_hold(CHANGE_FREEZES, FREEZE)), a_source("web", 6)
    changed = {**source, "spec": {**source["spec"], **IMAGE["spec"]}}
    held = "ChangeFreeze sale holds until 2099-01-01T00:00:00Z: the sale"
    assert notes(world, ObjectChange(DEPLOYMENTS, "default", "web", source, changed)) == {"east": held, "west": ""}
    assert notes(world, ObjectChange(DEPLOYMENTS, "default", "web", source, a_source("web", 8))) == {
        "east": "",
        "west": "",
    }


def test_a_plan_names_the_freeze_that_holds_a_move_in_each_of_its_clusters() -> None:
    world = a_frozen_world(a_hold(CHANGE_FREEZES, {**FREEZE, "holds": ["Evictions"]}))
    drained = change(world, FEDERATED_CLUSTERS, with_taint(cluster(world, "east"), names.TAINT_DRAIN, "", "NoExecute"))
    assert all("ChangeFreeze sale holds" in note for note in notes(world, drained).values())
    policy = world.get(PROPAGATION_POLICIES, "default", "divide")
    assert policy is not None
    moved = {**policy, "spec": {**policy["spec"], "placement": [{"cluster": "west"}]}}
    assert not any(notes(world, change(world, PROPAGATION_POLICIES, moved)).values()), "this is no eviction"


def test_a_plan_names_the_suspension_of_a_delivery() -> None:
    spec = {"clusters": ["west"], "owner": "ops", "reason": "a copy", "until": "2099-01-01T00:00:00Z"}
    world = a_frozen_world(a_hold(DELIVERY_SUSPENSIONS, spec, "default"))
    held = "DeliverySuspension default/sale holds until 2099-01-01T00:00:00Z: a copy (owner: ops)"
    scaled = ObjectChange(DEPLOYMENTS, "default", "web", a_source("web", 6), a_source("web", 8))
    assert notes(world, scaled) == {"east": "", "west": held}
    policy = world.get(PROPAGATION_POLICIES, "default", "divide")
    assert policy is not None
    left = {**policy, "spec": {**policy["spec"], "placement": [{"cluster": "east"}]}}
    assert notes(world, change(world, PROPAGATION_POLICIES, left)).get("west") != held, "a removal passes"


def test_a_plan_says_which_holds_it_could_not_read() -> None:
    world = a_usual_world()
    world.unread = (CHANGE_FREEZES,)
    assert plan(world).problems == ["changefreezes cannot be listed, so the plan does not tell what they hold"]


def a_world_with_a_volume(placement: dict[str, int], modes: list[str], **rules: Any) -> ObjectSet:
    source = a_source("web")
    source["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"accessModes": modes}}
    template = {**claim, "metadata": {"name": "data", "namespace": "default"}}
    usual = a_world(map(a_cluster, CLUSTERS), [a_policy(placement, **FREE, **rules)], sources=[source])
    metadata = {"name": "data-persistentvolumeclaims", "namespace": "default", "uid": "d", "resourceVersion": "1"}
    volume = {"metadata": metadata, "spec": {"template": template}}
    return usual.with_changes([ObjectChange(FEDERATED_OBJECTS, "default", metadata["name"], None, volume)])


@pytest.mark.parametrize(
    ("share", "modes", "held"),
    [
        (0.2, ["ReadWriteOnce"], ["PersistentVolumeClaim data"]),
        (0.2, ["ReadWriteMany"], []),
        (1.0, ["ReadWriteOnce"], ["PersistentVolumeClaim data"]),
    ],
    ids=["the guard is on", "the volume is anywhere", "the guard is off"],
)
def test_a_workload_that_would_leave_its_volume_is_held(share: float, modes: list[str], held: list[str]) -> None:
    world = a_world_with_a_volume({"east": 1, "west": 1}, modes)
    moved = change(world, PROPAGATION_POLICIES, a_policy({"west": 1}, **FREE))
    result = plan(world, moved, limits=Limits(GuardOptions(share=share)))
    assert [hold.volumes for hold in result.holds] == held


HELD_START = '{"hold":"db","cause":"PropagationPolicy default/divide","from":["east"],"since":"2026-01-01T00:00:00Z"}'
"""The record of an object that waits because volumes of its name are in another cluster."""


@pytest.mark.parametrize(
    ("placement", "record", "held"),
    [
        ({"west": 1}, HELD_START, ["PersistentVolumeClaim data"]),
        ({"east": 1}, HELD_START, []),
        ({"west": 1}, "", []),
    ],
    ids=["elsewhere", "where its volumes are", "without volumes"],
)
def test_a_plan_foresees_that_an_object_waits_for_volumes_of_an_earlier_one(
    placement: dict[str, int], record: str, held: list[str]
) -> None:
    """A plan reads no member. The control plane has recorded where the volumes are."""
    world = a_world_with_a_volume({"east": 1}, ["ReadWriteOnce"], clusterSelector={"none": "x"})
    federated = next(each for each in world.federated() if each["spec"]["template"]["kind"] == "Deployment")
    assert not effective_placement(federated)
    annotations = {**federated["metadata"].get("annotations", {}), **({names.HELD_PLACEMENT: record} if record else {})}
    waiting = {**federated, "metadata": {**federated["metadata"], "annotations": annotations}}
    world = world.with_changes(
        [ObjectChange(FEDERATED_OBJECTS, "default", federated["metadata"]["name"], federated, waiting)]
    )
    result = plan(
        world, change(world, PROPAGATION_POLICIES, a_policy(placement, **FREE)), limits=Limits(GuardOptions())
    )
    assert [hold.volumes for hold in result.holds] == held


def a_fleet_of(count: int) -> ObjectSet:
    sources = [a_source(f"web-{number}", 1) for number in range(count)]
    return a_world(
        map(a_cluster, CLUSTERS), [a_policy({"east": 1}, schedulingMode="Duplicate", **FREE)], sources=sources
    )


def a_move_to_west(world: ObjectSet) -> ObjectChange:
    return change(world, PROPAGATION_POLICIES, a_policy({"west": 1}, schedulingMode="Duplicate", **FREE))


@pytest.mark.parametrize(("count", "held"), [(10, []), (11, [(11, 11, 10)]), (30, [(30, 30, 10)])])
def test_a_plan_counts_all_moves_of_a_cause_before_the_guard_answers(
    count: int, held: list[tuple[int, int, int]]
) -> None:
    world = a_fleet_of(count)
    result = plan(world, a_move_to_west(world), limits=Limits(GuardOptions()))
    assert [(hold.counted, hold.size, hold.allowed) for hold in result.holds] == held
    assert sum(len(hold.objects) for hold in result.holds) == sum(each[0] for each in held)


def test_what_a_freeze_holds_does_not_count_for_the_guard() -> None:
    world = a_fleet_of(12)
    always = a_hold(CHANGE_FREEZES, {"reason": "the sale", "windows": ALWAYS})
    frozen = world.with_changes([always])
    result = plan(frozen, a_move_to_west(frozen), limits=Limits(GuardOptions()))
    assert result.holds == []
    assert all("ChangeFreeze sale holds" in row.held for obj in result.changed for row in obj.rows)


@pytest.mark.parametrize(("mode", "stays"), [("Never", {"east": "its policy says failover.mode: Never"}), ("Auto", {})])
def test_a_plan_of_a_drain_says_what_stays_by_the_rules_of_failover(mode: str, stays: dict[str, str]) -> None:
    policy = a_policy({"east": 1, "west": 1}, failover={"mode": mode}, **FREE)
    world = a_world(map(a_cluster, CLUSTERS), [policy], sources=[a_source("web", 6)])
    drained = change(world, FEDERATED_CLUSTERS, with_taint(cluster(world, "east"), names.TAINT_DRAIN, "", "NoExecute"))
    (obj,) = plan(world, drained).objects
    assert {name: stay.message for name, stay in obj.stays.items()} == stays
    left = {row.cluster: row.after.replicas for row in obj.rows if row.after is not None}
    assert left == ({} if stays else {"west": 6}), "what stays is no change"
    assert all(message in obj.reason for message in stays.values())


def test_a_plan_of_a_drain_keeps_what_has_no_other_place() -> None:
    clusters = [a_cluster("east"), with_taint(a_cluster("west"), "full", "", "NoSchedule")]
    world = a_world(clusters, [a_policy({"east": 1}, **FREE)], sources=[a_source("web", 6)])
    drained = change(world, FEDERATED_CLUSTERS, with_taint(cluster(world, "east"), names.TAINT_DRAIN, "", "NoExecute"))
    result = plan(world, drained)
    assert result.changed == []


def test_a_policy_that_suspends_scheduling_places_nothing_and_says_so() -> None:
    world = a_usual_world()
    suspended = a_policy({"east": 9, "west": 1}, suspension={"scheduling": True, "reason": "ask platform"}, **FREE)
    result = plan(world, change(world, PROPAGATION_POLICIES, suspended))
    assert result.summary()["replicasMoved"] == 0
    (obj,) = result.objects
    assert "suspends scheduling: ask platform" in obj.reason
    new = ObjectChange(DEPLOYMENTS, "default", "new", None, a_source("new", 2))
    result = plan(world, change(world, PROPAGATION_POLICIES, suspended), new)
    assert result.changed == []
    obj = next(each for each in result.objects if each.name == "new")
    assert "suspends scheduling: ask platform" in obj.reason


LOST_AT = "2025-11-01T00:00:00Z"
"""An hour ago and longer, for a toleration."""


def lost(name: str) -> Object:
    """Return a cluster that was lost long ago, with the taint that empties it."""
    found = a_cluster(name)
    for condition in found["status"]["conditions"]:
        condition["lastTransitionTime"] = LOST_AT
        if condition["type"] == names.CLUSTER_READY:
            condition["status"] = "Unknown"
    found["spec"]["taints"] = [{"key": names.TAINT_UNREACHABLE, "effect": "NoExecute", "timeAdded": LOST_AT}]
    return found


def ready(name: str) -> Object:
    found = a_cluster(name)
    for condition in found["status"]["conditions"]:
        condition["lastTransitionTime"] = LOST_AT
    return found


def leaving(limits: Limits | None, *gone: str, budget: Object | None = None) -> dict[str, str]:
    """Return why replicas stay in clusters that are lost in a plan, by cluster; {} if they leave."""
    places = {"east": 1, "west": 1, "south": 1}
    world = a_world(map(ready, places), [a_policy(places, **FREE)], sources=[a_source("web", 6)])
    changes = [change(world, FEDERATED_CLUSTERS, lost(name)) for name in gone]
    if budget is not None:
        world = world.with_changes([change(world, CLUSTER_DISRUPTION_BUDGETS, budget)])
        drained = with_taint(cluster(world, "east"), names.TAINT_DRAIN, "", "NoExecute")
        changes = [change(world, FEDERATED_CLUSTERS, drained)]
    (obj,) = plan(world, *changes, limits=limits, is_everything=True).objects
    return {name: stay.message for name, stay in obj.stays.items()}


def test_a_plan_halts_where_the_control_plane_would() -> None:
    """Otherwise a plan promises moves that begin when a user makes something else whole."""
    majority = "2 of 3 clusters are lost, more than 50%"
    assert leaving(None, "east") == {}
    assert leaving(None, "east", "west") == {"east": majority, "west": majority}
    patient = Limits(failover=FailoverOptions(HaltOptions(share=1.0)))
    assert leaving(patient, "east", "west") == {}


def test_a_plan_has_the_pace_of_its_host() -> None:
    """A pace ends with time; without failover nothing leaves at all."""
    assert leaving(Limits(failover=FailoverOptions(pace=PaceOptions(replicas_per_minute=1))), "east") == {}
    off = Limits(failover=FailoverOptions(pace=PaceOptions(replicas_per_minute=0)))
    assert leaving(off, "east") == {"east": "failover is off: no replicas leave"}


@pytest.mark.parametrize(
    ("spec", "stays"),
    [
        ({"maxUnavailable": 1}, ""),
        ({"maxUnavailable": 0}, "ClusterDisruptionBudget all allows 0 unavailable clusters; 0 of 3 clusters are "),
        ({"maxUnavailable": 1, "windows": [{"start": "2999-01-01T00:00:00Z", "end": "2999-01-02T00:00:00Z"}]}, ""),
    ],
    ids=["free", "used up", "opens in time"],
)
def test_a_plan_of_a_drain_asks_the_cluster_disruption_budgets(spec: Object, stays: str) -> None:
    found = leaving(None, budget={"metadata": {"name": "all"}, "spec": spec})
    assert found.keys() == ({"east"} if stays else set())
    assert found.get("east", "").startswith(stays)
