"""The schedule controller against a real registry in memory."""

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.support.schedule_world import World, pending_of, placements_of, schedule_world

from federation.api import names
from federation.api.resources import (
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    NAMESPACES,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
)
from federation.base.clock import ManualClock, SystemClock
from federation.client.outcalls import Answer
from federation.client.services import Services
from federation.controllers.schedule.webhooks import RemoteCaller
from federation.scheduling.clustertriggers import KINDS, ClusterSource
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.types import SUCCESS, PluginRequest, error, unschedulable
from federation.store.journal import DecisionFilter


def weights(**values: int) -> list[dict[str, Any]]:
    return [{"cluster": cluster, "preferences": {"weight": weight}} for cluster, weight in values.items()]


async def test_replicas_are_divided_by_weight_in_one_write(world: World) -> None:
    await world.policy("p", schedulingMode="Divide", placement=weights(east=1, north=2, west=3))
    await world.deployment(policy="p")
    fed_object = await world.becomes({"east": 1, "north": 2, "west": 3})
    annotations = fed_object["metadata"]["annotations"]
    assert names.GLOBAL_SCHEDULER not in pending_of(fed_object)
    assert json.loads(annotations[names.SCHEDULING])["placement"] == {"east": 1, "north": 2, "west": 3}
    assert annotations[names.ENABLE_FOLLOWER_SCHEDULING] == "true"
    await world.idle()
    assert world.writes() == 1
    (record,) = await world.journaled()
    assert record.outcome == "Scheduled"
    assert record.group == "apps"
    explanation = json.loads(record.explanation)
    assert explanation["policy"] == {"namespace": "default", "name": "p"}
    assert explanation["division"]["weights"]["by"] == "policy"
    told = [event for event in await world.events() if event[1] == names.EVENT_SCHEDULED]
    assert told == [("Normal", names.EVENT_SCHEDULED, "east 1, north 2, west 3 (PropagationPolicy default/p)")]


async def test_looking_again_at_a_scheduled_object_writes_nothing(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p")
    await world.becomes({"east": None, "north": None, "west": None})
    await world.patch_object("web", {"metadata": {"annotations": {"somebody": "else"}}})
    await world.idle()
    assert world.writes() == 1
    assert len(await world.journaled()) == 1


async def test_scaling_moves_only_the_difference_and_tells_it(world: World) -> None:
    await world.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1, west=1))
    await world.deployment(policy="p")
    await world.becomes({"east": 2, "north": 2, "west": 2})
    await world.scale("web", 9)
    await world.becomes({"east": 3, "north": 3, "west": 3})
    moves = [message for _, reason, message in await world.events() if reason == names.EVENT_SCHEDULED]
    assert moves == [
        "east 2, north 2, west 2 (PropagationPolicy default/p)",
        "east 2 → 3, north 2 → 3, west 2 → 3 (PropagationPolicy default/p)",
    ]
    records = await world.journaled()
    assert json.loads(records[0].explanation)["because"] == ["replicaCount"]


async def test_scaling_to_zero_keeps_the_object_in_its_clusters(world: World) -> None:
    await world.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await world.deployment(policy="p", replicas=4)
    await world.becomes({"east": 2, "north": 2})
    await world.scale("web", 0)
    await world.becomes({"east": 0, "north": 0})
    await world.scale("web", 2)
    await world.becomes({"east": 1, "north": 1})


async def test_a_cluster_without_a_share_is_dropped_and_remembered(world: World) -> None:
    await world.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await world.deployment(policy="p", replicas=4)
    await world.becomes({"east": 2, "north": 2})
    await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"placement": weights(north=1, west=1)}}, namespace="default")
    fed_object = await world.becomes({"north": 2, "west": 2})
    assert json.loads(fed_object["metadata"]["annotations"][names.DEPARTED_CLUSTERS]) == ["east"]


async def test_no_feasible_cluster_keeps_the_last_placement_and_says_so(world: World) -> None:
    await world.policy("p", clusterSelector={"region": "east"})
    await world.deployment(policy="p")
    await world.becomes({"east": None})
    await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"clusterSelector": {"region": "mars"}}}, namespace="default")
    condition = await world.condition("False", "NoFeasibleCluster")
    assert condition["message"] == "0/3 clusters are available: 3 cluster(s) didn't match cluster selector"
    assert await world.placed() == {"east": None}
    await world.idle()
    assert (await world.journaled())[0].outcome == "NoFeasibleCluster"
    warnings = [event for event in await world.events() if event[1] == names.EVENT_SCHEDULING_FAILED]
    assert len(warnings) == 1
    assert warnings[0][2].endswith("the last placement stays")


async def test_a_failure_before_the_first_placement_speaks_of_no_placement(world: World) -> None:
    await world.policy("p", clusterSelector={"region": "mars"})
    await world.deployment(policy="p")
    await world.condition("False", "NoFeasibleCluster")
    (warning,) = [event for event in await world.events() if event[1] == names.EVENT_SCHEDULING_FAILED]
    assert warning[2] == "0/3 clusters are available: 3 cluster(s) didn't match cluster selector"


async def test_replicas_that_get_no_place_are_told_although_nothing_moves(world: World) -> None:
    placement = [{"cluster": "east", "preferences": {"weight": 1, "maxReplicas": 4}}]
    await world.policy("p", schedulingMode="Divide", placement=placement)
    await world.deployment(policy="p", replicas=4)
    await world.becomes({"east": 4})
    await world.scale("web", 9)

    async def look() -> list[str]:
        return [message for type_, _, message in await world.events() if type_ == "Warning"]

    told = await world.until(look, "the event about replicas without a place")
    assert told == ["it stays as it was (PropagationPolicy default/p); 5 of 9 replicas have no place within the limits"]


async def test_an_unschedulable_object_is_retried_when_a_cluster_can_help(world: World) -> None:
    for name in ("east", "north", "west"):
        await world.cluster_status(name, ready=False)
    await world.policy("p")
    await world.deployment(policy="p")
    condition = await world.condition("False", "NoFeasibleCluster")
    assert condition["message"] == "0/3 clusters are available: 3 cluster(s) were unready"
    await world.turn_passed()
    await world.cluster_status("north", ready=True)
    await world.becomes({"north": None})
    await world.condition("True", names.REASON_SCHEDULED)


async def test_the_same_failure_again_is_counted_and_another_one_told(world: World) -> None:
    await world.policy("p", clusterSelector={"region": "moon"})
    await world.deployment(policy="p")
    await world.condition("False", "NoFeasibleCluster")
    await world.idle()
    (record,) = await world.journaled()
    assert record.repeats == 0
    await world.patch(FEDERATED_CLUSTERS, "north", {"metadata": {"labels": {"tier": "gold"}}})

    async def counted() -> bool:
        return (await world.journaled())[0].repeats > 0

    await world.until(counted, "a repetition")
    assert len(await world.journaled()) == 1
    assert len([event for event in await world.events() if event[1] == names.EVENT_SCHEDULING_FAILED]) == 1
    await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"clusterSelector": {"region": "mars"}}}, namespace="default")

    async def told_again() -> bool:
        return len(await world.journaled()) == 2

    await world.until(told_again, "another record")
    newest, oldest = (json.loads(record.explanation) for record in await world.journaled())
    assert newest["inputs"]["policy"] != oldest["inputs"]["policy"]
    assert newest["inputs"]["object"] == oldest["inputs"]["object"]


async def test_a_decision_that_changes_nothing_is_journaled_too(world: World) -> None:
    await world.policy("p", placement=[{"cluster": "east"}])
    await world.deployment(policy="p")
    await world.becomes({"east": None})
    await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"tolerations": [{"key": "a"}]}}, namespace="default")

    async def decided_again() -> bool:
        return len(await world.journaled()) == 2

    await world.until(decided_again, "the decision under the new policy")
    newest = json.loads((await world.journaled())[0].explanation)
    assert (newest["isChanged"], newest["because"]) == (False, ["policyContentHash"])


async def test_objects_of_urgent_policies_are_decided_first(world: World) -> None:
    when = {"rescheduleWhen": {"clusterLabelsChanged": True}}
    for name, priority in (("low", -1), ("high", 5)):
        await world.policy(name, schedulingPriority=priority, reschedulePolicy=when)
    objects = [(f"{policy}-{number}", policy) for policy in ("low", "high") for number in range(8)]
    for name, policy in objects:
        await world.deployment(name, policy=policy)
        await world.becomes({"east": None, "north": None, "west": None}, name)
    await world.patch(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "gold"}}})

    async def decided_again() -> bool:
        return len(await world.journal.query(DecisionFilter(kind="Deployment"), limit=100)) == 2 * len(objects)

    await world.until(decided_again, "all decided again")
    newest = await world.journal.query(DecisionFilter(kind="Deployment"), limit=len(objects))
    order = [record.name.split("-")[0] for record in reversed(newest)]
    turns = {name: sum(at for at, policy in enumerate(order) if policy == name) / 8 for name in ("low", "high")}
    assert turns["high"] + 2 < turns["low"], "but for each eighth turn, which is for who waited longest"


async def test_a_changed_priority_is_no_reason_to_decide_again(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p")
    await world.becomes({"east": None, "north": None, "west": None})
    await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"schedulingPriority": 7}}, namespace="default")
    await world.idle()
    assert len(await world.journaled()) == 1


async def test_what_cannot_help_wakes_nobody(world: World) -> None:
    await world.policy("p", clusterSelector={"region": "moon"})
    await world.deployment(policy="p")
    await world.condition("False", "NoFeasibleCluster")
    await world.idle()
    await world.cluster_status("north", cpu="7")
    await world.cluster_status("north", ready=False)
    await world.patch(FEDERATED_CLUSTERS, "north", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    await world.patch_object("web", {"metadata": {"annotations": {"somebody": "else"}}})
    await world.idle()
    (record,) = await world.journaled()
    assert record.repeats == 0, "no decision was made in vain"
    await world.patch(FEDERATED_CLUSTERS, "west", {"metadata": {"labels": {"region": "moon"}}})
    await world.becomes({"west": None})
    assert len(world.schedule._facts.waiting) == 0


async def test_a_change_of_the_waiting_object_itself_is_followed(world: World) -> None:
    await world.policy("p", clusterSelector={"region": "moon"})
    await world.deployment(policy="p")
    await world.condition("False", "NoFeasibleCluster")
    await world.idle()
    selector = json.dumps({"region": "west"})
    await world.patch_object("web", {"metadata": {"annotations": {names.CLUSTER_SELECTOR: selector}}})
    await world.becomes({"west": None})


async def test_time_helps_an_object_whose_clusters_were_closed_until_then() -> None:
    clock = ManualClock()
    async with schedule_world(clock=clock) as world:
        await world.cluster("east")
        closed = [{"cluster": "east", "validUntil": (clock.now() + timedelta(hours=1)).isoformat()}]
        request = {names.MIGRATION_CONFIGURATION: json.dumps({"workloadMigrations": closed})}
        await world.policy("p")
        await world.deployment(policy="p", annotations=request)
        await world.condition("False", "NoFeasibleCluster")
        await world.idle()
        await clock.advance(3599)
        await world.idle()
        assert await world.placed() == {}
        await clock.advance(1)
        await world.becomes({"east": None})


async def test_an_administrator_can_keep_annotations_from_overriding_policies(world: World) -> None:
    placements = json.dumps([{"cluster": "west"}])
    await world.policy("p", placement=[{"cluster": "east"}])
    await world.deployment(policy="p", annotations={names.PLACEMENTS: placements})
    await world.becomes({"west": None})
    label = {"metadata": {"labels": {names.SCHEDULING_ANNOTATIONS: "disabled"}}}
    await world.patch(NAMESPACES, "default", label)
    await world.becomes({"east": None})
    await world.idle()
    why = "objects in namespace default may not override their policy"
    explanation = json.loads((await world.journaled())[0].explanation)
    assert explanation["ignoredAnnotations"] == {names.PLACEMENTS: why}
    assert explanation["because"] == ["schedulingAnnotationsHash"]
    told = ("Warning", names.EVENT_SCHEDULING_ANNOTATION_IGNORED, f"annotation {names.PLACEMENTS} is ignored: {why}")
    assert told in await world.events()
    await world.patch(NAMESPACES, "default", {"metadata": {"labels": {names.SCHEDULING_ANNOTATIONS: "maybe"}}})
    await world.becomes({"west": None})
    assert names.EVENT_INVALID_NAMESPACE_LABEL in [event[1] for event in await world.events()]


async def test_the_switch_frees_an_object_that_its_annotation_kept_from_being_placed(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p", annotations={names.CLUSTER_SELECTOR: '{"region": "moon"}'})
    await world.condition("False", "NoFeasibleCluster")
    await world.idle()
    await world.patch(NAMESPACES, "default", {"metadata": {"labels": {names.SCHEDULING_ANNOTATIONS: "disabled"}}})
    await world.becomes({"east": None, "north": None, "west": None})


async def test_an_annotation_that_cannot_be_understood_is_told(world: World) -> None:
    await world.policy("p", placement=[{"cluster": "east"}])
    await world.deployment(policy="p", annotations={names.PLACEMENTS: "nonsense"})
    await world.becomes({"east": None})
    assert names.EVENT_INVALID_SCHEDULING_ANNOTATION in [event[1] for event in await world.events()]


async def test_a_missing_policy_is_told_and_its_arrival_helps(world: World) -> None:
    await world.deployment(policy="late")
    condition = await world.condition("False", names.REASON_POLICY_NOT_FOUND)
    assert condition["message"] == "PropagationPolicy default/late does not exist"
    await world.policy("late")
    await world.becomes({"east": None, "north": None, "west": None})
    await world.condition("True")


async def test_a_deleted_policy_keeps_the_placement(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p")
    await world.becomes({"east": None, "north": None, "west": None})
    await world.client.delete(PROPAGATION_POLICIES, "p", "default")
    await world.condition("False", names.REASON_POLICY_NOT_FOUND)
    assert await world.placed() == {"east": None, "north": None, "west": None}
    await world.policy("p")
    await world.condition("True")


async def test_an_object_without_any_policy_goes_nowhere_quietly(world: World) -> None:
    await world.deployment()
    fed_object = await world.turn_passed()
    assert placements_of(fed_object) == {}
    await world.idle()
    assert "conditions" not in ((await world.get()).get("status") or {})
    assert await world.events() == []


async def test_a_removed_policy_label_keeps_the_placement_and_says_so(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p")
    await world.becomes({"east": None, "north": None, "west": None})
    await world.patch_object("web", {"metadata": {"labels": {names.PROPAGATION_POLICY_LABEL: None}}})
    await world.condition("False", names.REASON_NO_POLICY)
    assert await world.placed() == {"east": None, "north": None, "west": None}


async def test_a_policy_may_select_objects_by_itself_and_a_label_wins(world: World) -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"tier": "front"}}}
    await world.policy("everywhere", "", resourceSelectors=[selector])
    await world.policy("north-only", placement=[{"cluster": "north"}])
    await world.deployment("selected", labels={"tier": "front"})
    await world.deployment("labelled", labels={"tier": "front"}, policy="north-only")
    await world.deployment("other", labels={"tier": "back"})
    await world.becomes({"east": None, "north": None, "west": None}, "selected")
    await world.becomes({"north": None}, "labelled")
    assert placements_of(await world.turn_passed("other")) == {}


async def test_a_policy_that_comes_later_finds_the_objects_that_it_selects(world: World) -> None:
    await world.deployment()
    await world.turn_passed()
    await world.policy("p", resourceSelectors=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}])
    await world.becomes({"east": None, "north": None, "west": None})


async def test_no_scheduling_leaves_the_object_alone(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p", annotations={names.NO_SCHEDULING: "true"})
    assert placements_of(await world.turn_passed()) == {}


async def test_it_waits_for_its_turn(world: World) -> None:
    await world.policy("p")
    before = json.dumps([["someone-else"], [names.GLOBAL_SCHEDULER]])
    await world.deployment(policy="p", annotations={names.PENDING_CONTROLLERS: before})
    await world.idle()
    assert await world.placed() == {}
    await world.patch_object(
        "web", {"metadata": {"annotations": {names.PENDING_CONTROLLERS: json.dumps([[names.GLOBAL_SCHEDULER]])}}}
    )
    await world.becomes({"east": None, "north": None, "west": None})


async def test_a_sticky_object_stays_when_its_clusters_do_not_fit_any_more(world: World) -> None:
    await world.policy("p", stickyCluster=True, clusterSelector={"region": "east"})
    await world.deployment(policy="p")
    await world.becomes({"east": None})
    await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"clusterSelector": {"region": "west"}}}, namespace="default")

    async def decided_again() -> bool:
        return (await world.journaled())[0].outcome == "Sticky"

    await world.until(decided_again)
    assert await world.placed() == {"east": None}


async def test_a_new_cluster_is_deferred_unless_the_policy_follows_it(world: World) -> None:
    await world.policy("stays")
    when = {"policyContentChanged": True, "clusterJoined": True}
    await world.policy("follows", reschedulePolicy={"rescheduleWhen": when})
    await world.deployment("a", policy="stays")
    await world.deployment("b", policy="follows")
    await world.becomes({"east": None, "north": None, "west": None}, "a")
    await world.becomes({"east": None, "north": None, "west": None}, "b")
    await world.cluster("south")
    await world.becomes({"east": None, "north": None, "south": None, "west": None}, "b")

    async def is_deferred() -> bool:
        annotations = (await world.get("a"))["metadata"]["annotations"]
        return annotations.get(names.SCHEDULING_DEFERRED_REASONS) == "clusterJoined:false"

    await world.until(is_deferred)
    assert await world.placed("a") == {"east": None, "north": None, "west": None}
    assert (await world.journaled("a"))[0].outcome == "Deferred"


async def test_triggers_in_kubeadmirals_form_are_no_reason_to_decide_again(world: World) -> None:
    await world.policy("p", reschedulePolicy={"rescheduleWhen": {"clusterJoined": True, "clusterLabelsChanged": True}})
    await world.deployment(policy="p")
    await world.becomes({"east": None, "north": None, "west": None})
    await world.idle()
    facts = world.schedule._facts
    short = json.loads((await world.get())["metadata"]["annotations"][names.SCHEDULING_TRIGGERS])
    clusters = ClusterSource(as_kubeadmiral=True).state(facts.clusters.snapshot())
    of_object = {field: value for field, value in short.items() if not field.startswith("cluster")}
    longer = json.dumps({**of_object, **json.loads(f"{{{clusters.text}}}")})
    await world.patch_object("web", {"metadata": {"annotations": {names.SCHEDULING_TRIGGERS: longer}}})
    await world.idle()
    assert len(await world.journaled()) == 1
    await world.patch(FEDERATED_CLUSTERS, "west", {"metadata": {"labels": {"region": "moon"}}})
    await world.idle()
    assert json.loads((await world.journaled())[0].explanation)["because"] == ["clusterLabelsHashes"]


async def test_what_kubeadmiral_has_decided_stays_and_is_noted_in_our_form(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p")
    before = await world.becomes({"east": None, "north": None, "west": None})
    await world.idle()
    ours = before["metadata"]["annotations"][names.SCHEDULING_TRIGGERS]
    theirs = {
        "schedulingAnnotationsHash": "1",
        "replicaCount": 6,
        "resourceRequest": {"MilliCPU": 100, "Memory": 0, "EphemeralStorage": 0, "ScalarResources": None},
        "policyName": "p",
        "policyContentHash": "1",
        "clusters": ["west", "east", "north"],
        **{kind: {"east": "1", "north": "1", "west": "1"} for kind in KINDS},
    }
    await world.patch_object("web", {"metadata": {"annotations": {names.SCHEDULING_TRIGGERS: json.dumps(theirs)}}})

    async def is_noted() -> bool:
        found: str = (await world.get())["metadata"]["annotations"][names.SCHEDULING_TRIGGERS]
        return found == ours

    await world.until(is_noted)
    await world.idle()
    assert len(await world.journaled()) == 1


async def test_a_taint_that_executes_moves_the_object_away(world: World) -> None:
    await world.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await world.deployment(policy="p", replicas=4)
    await world.becomes({"east": 2, "north": 2})
    taints = [{"key": "down", "effect": "NoExecute"}]
    await world.patch(FEDERATED_CLUSTERS, "east", {"spec": {"taints": taints}})
    await world.becomes({"north": 4})


async def test_a_removed_cluster_is_left(world: World) -> None:
    await world.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await world.deployment(policy="p", replicas=4)
    await world.becomes({"east": 2, "north": 2})
    await world.client.delete(FEDERATED_CLUSTERS, "east")
    fed_object = await world.becomes({"north": 4})
    assert json.loads(fed_object["metadata"]["annotations"][names.DEPARTED_CLUSTERS]) == ["east"]


async def test_a_profile_changes_the_plugins_and_its_edits_count(world: World) -> None:
    await world.policy("p", schedulingProfile="picky", placement=[{"cluster": "north"}])
    await world.deployment(policy="p")
    await world.condition("False", names.REASON_PROFILE_NOT_FOUND)
    await world.profile("picky")
    await world.becomes({"north": None})
    plugins = {"filter": {"disabled": [{"name": "PlacementFilter"}]}}
    await world.patch(SCHEDULING_PROFILES, "picky", {"spec": {"plugins": plugins}})
    await world.becomes({"east": None, "north": None, "west": None})


async def test_annotations_override_the_policy(world: World) -> None:
    await world.policy("p")
    placements = json.dumps([{"cluster": "west"}])
    await world.deployment(policy="p", annotations={names.PLACEMENTS: placements})
    await world.becomes({"west": None})


async def test_cluster_names_in_capitals_mean_the_lower_case_cluster(world: World) -> None:
    await world.policy("p", schedulingMode="Divide", placement=weights(East=1, NORTH=2))
    await world.deployment(policy="p")
    await world.becomes({"east": 2, "north": 4})


async def test_a_wrong_migration_request_is_told_and_a_right_one_caps_a_cluster(world: World) -> None:
    await world.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await world.deployment(policy="p", annotations={names.MIGRATION_CONFIGURATION: "{nonsense"})
    await world.becomes({"east": 3, "north": 3})
    (told,) = [event[2] for event in await world.events() if event[1] == names.EVENT_PARSE_MIGRATION_CONFIGURATION]
    assert told.startswith(f"annotation {names.MIGRATION_CONFIGURATION} is not followed: ")
    request = json.dumps({"replicasMigrations": [{"cluster": "east", "limitedCapacity": 1}]})
    await world.patch_object("web", {"metadata": {"annotations": {names.MIGRATION_CONFIGURATION: request}}})
    fed_object = await world.becomes({"east": 1, "north": 5})
    applied = fed_object["metadata"]["annotations"][names.APPLIED_MIGRATION_CONFIGURATION]
    assert json.loads(applied) == {"limitedCapacity": {"east": 1}}


async def test_objects_that_go_are_forgotten(world: World) -> None:
    await world.deployment(policy="missing")
    await world.condition("False")
    assert world.schedule._facts.waiting
    await world.client.delete(FEDERATED_OBJECTS, "web-deployments.apps", "default")

    async def is_forgotten() -> bool:
        return not world.schedule._facts.waiting

    await world.until(is_forgotten)


async def test_a_broken_policy_keeps_the_version_before_in_force(world: World) -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"tier": "front"}}}
    await world.policy("p", resourceSelectors=[selector])
    await world.deployment(labels={"tier": "front"})
    await world.becomes({"east": None, "north": None, "west": None})
    broken = {"matchExpressions": [{"key": "tier", "operator": "In"}]}
    await world.patch(
        PROPAGATION_POLICIES,
        "p",
        {"spec": {"resourceSelectors": [{**selector, "labelSelector": broken}]}},
        namespace="default",
    )

    async def is_told() -> bool:
        return names.EVENT_INVALID_PROPAGATION_POLICY in [event[1] for event in await world.events()]

    await world.until(is_told)
    await world.idle()
    assert "conditions" not in ((await world.get()).get("status") or {})


async def test_a_policy_that_can_hardly_be_meant_is_in_force_and_its_owner_is_told(world: World) -> None:
    await world.policy("p", maxClusters=0)

    async def is_told() -> bool:
        said = [message for _, reason, message in await world.events() if reason == "InvalidPropagationPolicy"]
        return said == ["spec.maxClusters: 0 lets nothing be placed; leave it out for no limit"]

    await world.until(is_told)
    await world.deployment(policy="p")
    await world.condition("False", "NoFeasibleCluster")


async def test_a_profile_that_cannot_work_is_told_when_it_is_written(world: World) -> None:
    await world.profile("p", plugins={"select": {"enabled": [{"name": "MaxCluster"}]}})

    async def is_told() -> bool:
        said = [message for _, reason, message in await world.events() if reason == "InvalidSchedulingProfile"]
        return said == ["spec.plugins.select.enabled: MaxCluster runs there already; disable it to change its place"]

    await world.until(is_told)


async def test_a_policy_whose_labels_change_concerns_nobody(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p")
    await world.becomes({"east": None, "north": None, "west": None})
    await world.patch(PROPAGATION_POLICIES, "p", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    await world.idle()
    assert world.writes() == 1


async def test_a_deleted_profile_is_told(world: World) -> None:
    await world.profile("mine")
    await world.policy("p", schedulingProfile="mine")
    await world.deployment(policy="p")
    await world.becomes({"east": None, "north": None, "west": None})
    await world.patch(SCHEDULING_PROFILES, "mine", {"metadata": {"labels": {"a": "b"}}})
    await world.client.delete(SCHEDULING_PROFILES, "mine")
    await world.condition("False", names.REASON_PROFILE_NOT_FOUND)
    assert await world.placed() == {"east": None, "north": None, "west": None}


async def test_an_object_whose_turn_cannot_be_read_is_left_alone(world: World) -> None:
    await world.policy("p")
    await world.deployment(policy="p", annotations={names.PENDING_CONTROLLERS: "{nonsense"})
    await world.idle()
    assert world.writes() == 0


async def test_a_withdrawn_migration_request_is_withdrawn(world: World) -> None:
    request = json.dumps({"replicasMigrations": [{"cluster": "east", "limitedCapacity": 1}]})
    await world.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await world.deployment(policy="p", annotations={names.MIGRATION_CONFIGURATION: request})
    await world.becomes({"east": 1, "north": 5})
    await world.patch_object("web", {"metadata": {"annotations": {names.MIGRATION_CONFIGURATION: None}}})

    async def is_withdrawn() -> bool:
        return names.APPLIED_MIGRATION_CONFIGURATION not in (await world.get())["metadata"]["annotations"]

    await world.until(is_withdrawn)


class Remote:
    """A filter that lies elsewhere: it lets pass what it is told to."""

    def filter_clusters(self, unit: Any, clusters: Any, state: Any) -> Any:
        responses = yield [PluginRequest(cluster.name, b"") for cluster in clusters]
        return [
            error(response.error) if response.error else SUCCESS if response.status == 200 else unschedulable("no")
            for response in responses
        ]


class Service:
    """Answers for the remote filter, without a network."""

    def __init__(self) -> None:
        self.is_up = True

    async def post(self, connection: Any, body: bytes, headers: Any, *, timeout_s: float) -> Answer:
        if not self.is_up:
            return Answer(0, error="down")
        return Answer(200 if connection.server == "west" else 404)


@pytest.mark.parametrize("is_driven", [True, False])
async def test_a_remote_plugin_decides_with_us_and_its_failure_keeps_the_placement(is_driven: bool) -> None:
    service = Service()
    caller = RemoteCaller(Services(service, clock=SystemClock()))
    plugins = load_plugins().with_plugin("remote", lambda _: Remote())
    async with schedule_world(plugins, caller if is_driven else None) as world:
        for name in ("east", "west"):
            await world.cluster(name)
        await world.profile("r", plugins={"filter": {"enabled": [{"type": "Webhook", "name": "remote"}]}})
        await world.policy("p", schedulingProfile="r")
        await world.deployment(policy="p")
        if not is_driven:
            condition = await world.condition("False", "PluginFailed")
            assert condition["message"] == "remote failed in filter: remote plugins are switched off"
            return
        await world.becomes({"west": None})
        service.is_up = False
        await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"maxClusters": 2}}, namespace="default")
        await world.condition("False", "PluginFailed")
        assert await world.placed() == {"west": None}
