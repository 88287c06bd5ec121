"""The schedule controller on a registry in memory."""

import json
from datetime import timedelta
from typing import Any

import pytest
from tests.support.schedule_harness import Harness, pending_of, placements_of, schedule_harness

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PROPAGATION_POLICIES, SCHEDULING_PROFILES
from federation.apimachinery.clock import ManualClock, SystemClock
from federation.apimachinery.resources import NAMESPACES
from federation.apimachinery.webhookclient import WebhookResponse
from federation.client.retryingwebhookclient import RetryingWebhookClient
from federation.controllers.schedule import names as reasons
from federation.journal.decisions import DecisionFilter
from federation.plans.plugincalls import RemoteCaller
from federation.scheduling.clustertriggers import KINDS, ClusterTriggerSource
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.types import SUCCESS, PluginRequest, error, unschedulable
from federation.scheduling.names import REASON_POLICY_NOT_FOUND, REASON_PROFILE_NOT_FOUND, SCHEDULING_ANNOTATIONS


def weights(**values: int) -> list[dict[str, Any]]:
    return [{"cluster": cluster, "preferences": {"weight": weight}} for cluster, weight in values.items()]


async def test_replicas_are_divided_by_weight_in_one_write(harness: Harness) -> None:
    await harness.policy("p", schedulingMode="Divide", placement=weights(east=1, north=2, west=3))
    await harness.deployment(policy="p")
    federated = await harness.becomes({"east": 1, "north": 2, "west": 3})
    annotations = federated["metadata"]["annotations"]
    assert names.GLOBAL_SCHEDULER not in pending_of(federated)
    assert json.loads(annotations[names.SCHEDULING])["placement"] == {"east": 1, "north": 2, "west": 3}
    assert annotations[names.ENABLE_FOLLOWER_SCHEDULING] == "true"
    await harness.idle()
    assert harness.writes() == 1
    (record,) = await harness.journaled()
    assert record.outcome == "Scheduled"
    assert record.group == "apps"
    explanation = json.loads(record.explanation)
    assert explanation["policy"] == {"namespace": "default", "name": "p"}
    assert explanation["division"]["weights"]["by"] == "policy"
    emitted = [event for event in await harness.events() if event[1] == reasons.EVENT_SCHEDULED]
    assert emitted == [("Normal", reasons.EVENT_SCHEDULED, "east 1, north 2, west 3 (PropagationPolicy default/p)")]


async def test_reconciling_a_scheduled_object_writes_nothing(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p")
    await harness.becomes({"east": None, "north": None, "west": None})
    await harness.patch_object("web", {"metadata": {"annotations": {"somebody": "else"}}})
    await harness.idle()
    assert harness.writes() == 1
    assert len(await harness.journaled()) == 1


async def test_scaling_moves_only_the_difference_and_emits_an_event(harness: Harness) -> None:
    await harness.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1, west=1))
    await harness.deployment(policy="p")
    await harness.becomes({"east": 2, "north": 2, "west": 2})
    await harness.scale("web", 9)
    await harness.becomes({"east": 3, "north": 3, "west": 3})
    moves = [message for _, reason, message in await harness.events() if reason == reasons.EVENT_SCHEDULED]
    assert moves == [
        "east 2, north 2, west 2 (PropagationPolicy default/p)",
        "east 2 → 3, north 2 → 3, west 2 → 3 (PropagationPolicy default/p)",
    ]
    records = await harness.journaled()
    assert json.loads(records[0].explanation)["because"] == ["replicaCount"]


async def test_scaling_to_zero_keeps_the_object_in_its_clusters(harness: Harness) -> None:
    await harness.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await harness.deployment(policy="p", replicas=4)
    await harness.becomes({"east": 2, "north": 2})
    await harness.scale("web", 0)
    await harness.becomes({"east": 0, "north": 0})
    await harness.scale("web", 2)
    await harness.becomes({"east": 1, "north": 1})


async def test_a_cluster_without_a_share_is_dropped_and_remembered(harness: Harness) -> None:
    await harness.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await harness.deployment(policy="p", replicas=4)
    await harness.becomes({"east": 2, "north": 2})
    await harness.patch(
        PROPAGATION_POLICIES, "p", {"spec": {"placement": weights(north=1, west=1)}}, namespace="default"
    )
    federated = await harness.becomes({"north": 2, "west": 2})
    assert json.loads(federated["metadata"]["annotations"][names.DEPARTED_CLUSTERS]) == ["east"]


async def test_no_feasible_cluster_keeps_the_last_placement_and_says_so(harness: Harness) -> None:
    await harness.policy("p", clusterSelector={"region": "east"})
    await harness.deployment(policy="p")
    await harness.becomes({"east": None})
    await harness.patch(
        PROPAGATION_POLICIES, "p", {"spec": {"clusterSelector": {"region": "mars"}}}, namespace="default"
    )
    condition = await harness.condition("False", "NoFeasibleCluster")
    assert condition["message"] == "0/3 clusters are available: 3 cluster(s) didn't match cluster selector"
    assert await harness.placed() == {"east": None}
    await harness.idle()
    assert (await harness.journaled())[0].outcome == "NoFeasibleCluster"
    warnings = [event for event in await harness.events() if event[1] == reasons.EVENT_SCHEDULING_FAILED]
    assert len(warnings) == 1
    assert warnings[0][2].endswith("the last placement stays")


async def test_a_failure_before_the_first_placement_speaks_of_no_placement(harness: Harness) -> None:
    await harness.policy("p", clusterSelector={"region": "mars"})
    await harness.deployment(policy="p")
    await harness.condition("False", "NoFeasibleCluster")
    (warning,) = [event for event in await harness.events() if event[1] == reasons.EVENT_SCHEDULING_FAILED]
    assert warning[2] == "0/3 clusters are available: 3 cluster(s) didn't match cluster selector"


async def test_unplaced_replicas_are_reported_without_a_move(harness: Harness) -> None:
    placement = [{"cluster": "east", "preferences": {"weight": 1, "maxReplicas": 4}}]
    await harness.policy("p", schedulingMode="Divide", placement=placement)
    await harness.deployment(policy="p", replicas=4)
    await harness.becomes({"east": 4})
    await harness.scale("web", 9)

    async def read() -> list[str]:
        return [message for type_, _, message in await harness.events() if type_ == "Warning"]

    emitted = await harness.until(read, "the event about replicas without a place")
    assert emitted == [
        "it stays as it was (PropagationPolicy default/p); 5 of 9 replicas have no place within the limits"
    ]


async def test_an_unschedulable_object_is_retried_when_a_cluster_can_help(harness: Harness) -> None:
    for name in ("east", "north", "west"):
        await harness.cluster_status(name, ready=False)
    await harness.policy("p")
    await harness.deployment(policy="p")
    condition = await harness.condition("False", "NoFeasibleCluster")
    assert condition["message"] == "0/3 clusters are available: 3 cluster(s) were unready"
    await harness.scheduler_done()
    await harness.cluster_status("north", ready=True)
    await harness.becomes({"north": None})
    await harness.condition("True", names.REASON_SCHEDULED)


async def test_a_repeated_failure_is_counted_and_a_different_one_recorded(harness: Harness) -> None:
    await harness.policy("p", clusterSelector={"region": "moon"})
    await harness.deployment(policy="p")
    await harness.condition("False", "NoFeasibleCluster")
    await harness.idle()
    (record,) = await harness.journaled()
    assert record.repeats == 0
    await harness.patch(FEDERATED_CLUSTERS, "north", {"metadata": {"labels": {"tier": "gold"}}})

    async def counted() -> bool:
        return (await harness.journaled())[0].repeats > 0

    await harness.until(counted, "a repetition")
    assert len(await harness.journaled()) == 1
    assert len([event for event in await harness.events() if event[1] == reasons.EVENT_SCHEDULING_FAILED]) == 1
    await harness.patch(
        PROPAGATION_POLICIES, "p", {"spec": {"clusterSelector": {"region": "mars"}}}, namespace="default"
    )

    async def told_again() -> bool:
        return len(await harness.journaled()) == 2

    await harness.until(told_again, "another record")
    newest, oldest = (json.loads(record.explanation) for record in await harness.journaled())
    assert newest["inputs"]["policy"] != oldest["inputs"]["policy"]
    assert newest["inputs"]["object"] == oldest["inputs"]["object"]


async def test_a_decision_that_changes_nothing_is_journaled_too(harness: Harness) -> None:
    await harness.policy("p", placement=[{"cluster": "east"}])
    await harness.deployment(policy="p")
    await harness.becomes({"east": None})
    await harness.patch(PROPAGATION_POLICIES, "p", {"spec": {"tolerations": [{"key": "a"}]}}, namespace="default")

    async def decided_again() -> bool:
        return len(await harness.journaled()) == 2

    await harness.until(decided_again, "the decision under the new policy")
    newest = json.loads((await harness.journaled())[0].explanation)
    assert (newest["isChanged"], newest["because"]) == (False, ["policyContentHash"])


async def test_objects_of_urgent_policies_are_decided_first(harness: Harness) -> None:
    when = {"rescheduleWhen": {"clusterLabelsChanged": True}}
    for name, priority in (("low", -1), ("high", 5)):
        await harness.policy(name, schedulingPriority=priority, reschedulePolicy=when)
    objects = [(f"{policy}-{number}", policy) for policy in ("low", "high") for number in range(8)]
    for name, policy in objects:
        await harness.deployment(name, policy=policy)
        await harness.becomes({"east": None, "north": None, "west": None}, name)
    await harness.patch(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"tier": "gold"}}})

    async def decided_again() -> bool:
        return len(await harness.journal.query(DecisionFilter(kind="Deployment"), limit=100)) == 2 * len(objects)

    await harness.until(decided_again, "all decided again")
    newest = await harness.journal.query(DecisionFilter(kind="Deployment"), limit=len(objects))
    order = [record.name.split("-")[0] for record in reversed(newest)]
    turns = {name: sum(at for at, policy in enumerate(order) if policy == name) / 8 for name in ("low", "high")}
    assert turns["high"] + 2 < turns["low"], "but for each eighth turn, which is for who waited longest"


async def test_a_changed_priority_triggers_no_rescheduling(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p")
    await harness.becomes({"east": None, "north": None, "west": None})
    await harness.patch(PROPAGATION_POLICIES, "p", {"spec": {"schedulingPriority": 7}}, namespace="default")
    await harness.idle()
    assert len(await harness.journaled()) == 1


async def test_a_change_that_matches_no_hint_requeues_nothing(harness: Harness) -> None:
    await harness.policy("p", clusterSelector={"region": "moon"})
    await harness.deployment(policy="p")
    await harness.condition("False", "NoFeasibleCluster")
    await harness.idle()
    await harness.cluster_status("north", cpu="7")
    await harness.cluster_status("north", ready=False)
    await harness.patch(FEDERATED_CLUSTERS, "north", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    await harness.patch_object("web", {"metadata": {"annotations": {"somebody": "else"}}})
    await harness.idle()
    (record,) = await harness.journaled()
    assert record.repeats == 0, "no decision was made in vain"
    await harness.patch(FEDERATED_CLUSTERS, "west", {"metadata": {"labels": {"region": "moon"}}})
    await harness.becomes({"west": None})
    assert len(harness.schedule.cache.unschedulable) == 0


async def test_a_changed_unschedulable_object_is_retried(harness: Harness) -> None:
    await harness.policy("p", clusterSelector={"region": "moon"})
    await harness.deployment(policy="p")
    await harness.condition("False", "NoFeasibleCluster")
    await harness.idle()
    selector = json.dumps({"region": "west"})
    await harness.patch_object("web", {"metadata": {"annotations": {names.CLUSTER_SELECTOR: selector}}})
    await harness.becomes({"west": None})


async def test_time_helps_an_object_whose_clusters_were_closed_until_then() -> None:
    clock = ManualClock()
    async with schedule_harness(clock=clock) as harness:
        await harness.cluster("east")
        closed = [{"cluster": "east", "validUntil": (clock.now() + timedelta(hours=1)).isoformat()}]
        request = {names.MIGRATION_CONFIGURATION: json.dumps({"workloadMigrations": closed})}
        await harness.policy("p")
        await harness.deployment(policy="p", annotations=request)
        await harness.condition("False", "NoFeasibleCluster")
        await harness.idle()
        await clock.advance(3599)
        await harness.idle()
        assert await harness.placed() == {}
        await clock.advance(1)
        await harness.becomes({"east": None})


async def test_an_administrator_can_keep_annotations_from_overriding_policies(harness: Harness) -> None:
    placements = json.dumps([{"cluster": "west"}])
    await harness.policy("p", placement=[{"cluster": "east"}])
    await harness.deployment(policy="p", annotations={names.PLACEMENTS: placements})
    await harness.becomes({"west": None})
    label = {"metadata": {"labels": {SCHEDULING_ANNOTATIONS: "disabled"}}}
    await harness.patch(NAMESPACES, "default", label)
    await harness.becomes({"east": None})
    await harness.idle()
    why = "objects in namespace default may not override their policy"
    explanation = json.loads((await harness.journaled())[0].explanation)
    assert explanation["ignoredAnnotations"] == {names.PLACEMENTS: why}
    assert explanation["because"] == ["schedulingAnnotationsHash"]
    message = f"annotation {names.PLACEMENTS} is ignored: {why}"
    assert ("Warning", reasons.EVENT_SCHEDULING_ANNOTATION_IGNORED, message) in await harness.events()
    await harness.patch(NAMESPACES, "default", {"metadata": {"labels": {SCHEDULING_ANNOTATIONS: "maybe"}}})
    await harness.becomes({"west": None})
    assert reasons.EVENT_INVALID_NAMESPACE_LABEL in [event[1] for event in await harness.events()]


async def test_disabling_annotations_schedules_an_object_that_its_annotation_blocked(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p", annotations={names.CLUSTER_SELECTOR: '{"region": "moon"}'})
    await harness.condition("False", "NoFeasibleCluster")
    await harness.idle()
    await harness.patch(NAMESPACES, "default", {"metadata": {"labels": {SCHEDULING_ANNOTATIONS: "disabled"}}})
    await harness.becomes({"east": None, "north": None, "west": None})


async def test_an_invalid_annotation_is_reported(harness: Harness) -> None:
    await harness.policy("p", placement=[{"cluster": "east"}])
    await harness.deployment(policy="p", annotations={names.PLACEMENTS: "nonsense"})
    await harness.becomes({"east": None})
    assert reasons.EVENT_INVALID_SCHEDULING_ANNOTATION in [event[1] for event in await harness.events()]


async def test_a_missing_policy_is_reported_and_its_creation_schedules_the_object(harness: Harness) -> None:
    await harness.deployment(policy="late")
    condition = await harness.condition("False", REASON_POLICY_NOT_FOUND)
    assert condition["message"] == "PropagationPolicy default/late does not exist"
    await harness.policy("late")
    await harness.becomes({"east": None, "north": None, "west": None})
    await harness.condition("True")


async def test_a_deleted_policy_keeps_the_placement(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p")
    await harness.becomes({"east": None, "north": None, "west": None})
    await harness.client.delete(PROPAGATION_POLICIES, "p", "default")
    await harness.condition("False", REASON_POLICY_NOT_FOUND)
    assert await harness.placed() == {"east": None, "north": None, "west": None}
    await harness.policy("p")
    await harness.condition("True")


async def test_an_object_without_a_policy_is_not_placed_and_not_reported(harness: Harness) -> None:
    await harness.deployment()
    federated = await harness.scheduler_done()
    assert placements_of(federated) == {}
    await harness.idle()
    assert "conditions" not in ((await harness.get()).get("status") or {})
    assert await harness.events() == []


async def test_a_removed_policy_label_keeps_the_placement_and_says_so(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p")
    await harness.becomes({"east": None, "north": None, "west": None})
    await harness.patch_object("web", {"metadata": {"labels": {names.PROPAGATION_POLICY_LABEL: None}}})
    await harness.condition("False", names.REASON_NO_POLICY)
    assert await harness.placed() == {"east": None, "north": None, "west": None}


async def test_a_policy_may_select_objects_by_itself_and_a_label_wins(harness: Harness) -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"tier": "front"}}}
    await harness.policy("everywhere", "", resourceSelectors=[selector])
    await harness.policy("north-only", placement=[{"cluster": "north"}])
    await harness.deployment("selected", labels={"tier": "front"})
    await harness.deployment("labelled", labels={"tier": "front"}, policy="north-only")
    await harness.deployment("other", labels={"tier": "back"})
    await harness.becomes({"east": None, "north": None, "west": None}, "selected")
    await harness.becomes({"north": None}, "labelled")
    assert placements_of(await harness.scheduler_done("other")) == {}


async def test_a_policy_that_comes_later_finds_the_objects_that_it_selects(harness: Harness) -> None:
    await harness.deployment()
    await harness.scheduler_done()
    await harness.policy("p", resourceSelectors=[{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}])
    await harness.becomes({"east": None, "north": None, "west": None})


async def test_no_scheduling_leaves_the_object_alone(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p", annotations={names.NO_SCHEDULING: "true"})
    assert placements_of(await harness.scheduler_done()) == {}


async def test_an_object_waits_for_earlier_controllers(harness: Harness) -> None:
    await harness.policy("p")
    before = json.dumps([["someone-else"], [names.GLOBAL_SCHEDULER]])
    await harness.deployment(policy="p", annotations={names.PENDING_CONTROLLERS: before})
    await harness.idle()
    assert await harness.placed() == {}
    await harness.patch_object(
        "web", {"metadata": {"annotations": {names.PENDING_CONTROLLERS: json.dumps([[names.GLOBAL_SCHEDULER]])}}}
    )
    await harness.becomes({"east": None, "north": None, "west": None})


async def test_a_sticky_object_stays_when_its_clusters_do_not_fit_any_more(harness: Harness) -> None:
    await harness.policy("p", stickyCluster=True, clusterSelector={"region": "east"})
    await harness.deployment(policy="p")
    await harness.becomes({"east": None})
    await harness.patch(
        PROPAGATION_POLICIES, "p", {"spec": {"clusterSelector": {"region": "west"}}}, namespace="default"
    )

    async def decided_again() -> bool:
        return (await harness.journaled())[0].outcome == "Sticky"

    await harness.until(decided_again)
    assert await harness.placed() == {"east": None}


async def test_a_new_cluster_is_deferred_unless_the_policy_follows_it(harness: Harness) -> None:
    await harness.policy("stays")
    when = {"policyContentChanged": True, "clusterJoined": True}
    await harness.policy("follows", reschedulePolicy={"rescheduleWhen": when})
    await harness.deployment("a", policy="stays")
    await harness.deployment("b", policy="follows")
    await harness.becomes({"east": None, "north": None, "west": None}, "a")
    await harness.becomes({"east": None, "north": None, "west": None}, "b")
    await harness.cluster("south")
    await harness.becomes({"east": None, "north": None, "south": None, "west": None}, "b")

    async def is_deferred() -> bool:
        annotations = (await harness.get("a"))["metadata"]["annotations"]
        return annotations.get(names.SCHEDULING_DEFERRED_REASONS) == "clusterJoined:false"

    await harness.until(is_deferred)
    assert await harness.placed("a") == {"east": None, "north": None, "west": None}
    assert (await harness.journaled("a"))[0].outcome == "Deferred"


async def test_triggers_in_kubeadmirals_form_trigger_no_rescheduling(harness: Harness) -> None:
    await harness.policy(
        "p", reschedulePolicy={"rescheduleWhen": {"clusterJoined": True, "clusterLabelsChanged": True}}
    )
    await harness.deployment(policy="p")
    await harness.becomes({"east": None, "north": None, "west": None})
    await harness.idle()
    facts = harness.schedule.cache
    short = json.loads((await harness.get())["metadata"]["annotations"][names.SCHEDULING_TRIGGERS])
    clusters = ClusterTriggerSource(as_kubeadmiral=True).state(facts.clusters.snapshot())
    of_object = {field: value for field, value in short.items() if not field.startswith("cluster")}
    longer = json.dumps({**of_object, **json.loads(f"{{{clusters.text}}}")})
    await harness.patch_object("web", {"metadata": {"annotations": {names.SCHEDULING_TRIGGERS: longer}}})
    await harness.idle()
    assert len(await harness.journaled()) == 1
    await harness.patch(FEDERATED_CLUSTERS, "west", {"metadata": {"labels": {"region": "moon"}}})
    await harness.idle()
    assert json.loads((await harness.journaled())[0].explanation)["because"] == ["clusterLabelsHashes"]


async def test_a_decision_of_kubeadmiral_stays_and_its_triggers_are_converted(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p")
    before = await harness.becomes({"east": None, "north": None, "west": None})
    await harness.idle()
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
    await harness.patch_object("web", {"metadata": {"annotations": {names.SCHEDULING_TRIGGERS: json.dumps(theirs)}}})

    async def is_noted() -> bool:
        found: str = (await harness.get())["metadata"]["annotations"][names.SCHEDULING_TRIGGERS]
        return found == ours

    await harness.until(is_noted)
    await harness.idle()
    assert len(await harness.journaled()) == 1


async def test_a_taint_that_executes_moves_the_object_away(harness: Harness) -> None:
    await harness.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await harness.deployment(policy="p", replicas=4)
    await harness.becomes({"east": 2, "north": 2})
    taints = [{"key": "down", "effect": "NoExecute"}]
    await harness.patch(FEDERATED_CLUSTERS, "east", {"spec": {"taints": taints}})
    await harness.becomes({"north": 4})


async def test_a_removed_cluster_is_left(harness: Harness) -> None:
    await harness.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await harness.deployment(policy="p", replicas=4)
    await harness.becomes({"east": 2, "north": 2})
    await harness.client.delete(FEDERATED_CLUSTERS, "east")
    federated = await harness.becomes({"north": 4})
    assert json.loads(federated["metadata"]["annotations"][names.DEPARTED_CLUSTERS]) == ["east"]


async def test_a_profile_changes_the_plugins_and_its_edits_count(harness: Harness) -> None:
    await harness.policy("p", schedulingProfile="picky", placement=[{"cluster": "north"}])
    await harness.deployment(policy="p")
    await harness.condition("False", REASON_PROFILE_NOT_FOUND)
    await harness.profile("picky")
    await harness.becomes({"north": None})
    plugins = {"filter": {"disabled": [{"name": "PlacementFilter"}]}}
    await harness.patch(SCHEDULING_PROFILES, "picky", {"spec": {"plugins": plugins}})
    await harness.becomes({"east": None, "north": None, "west": None})


async def test_annotations_override_the_policy(harness: Harness) -> None:
    await harness.policy("p")
    placements = json.dumps([{"cluster": "west"}])
    await harness.deployment(policy="p", annotations={names.PLACEMENTS: placements})
    await harness.becomes({"west": None})


async def test_cluster_names_in_capitals_mean_the_lower_case_cluster(harness: Harness) -> None:
    await harness.policy("p", schedulingMode="Divide", placement=weights(East=1, NORTH=2))
    await harness.deployment(policy="p")
    await harness.becomes({"east": 2, "north": 4})


async def test_an_invalid_migration_request_is_reported_and_a_valid_one_limits_a_cluster(harness: Harness) -> None:
    await harness.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await harness.deployment(policy="p", annotations={names.MIGRATION_CONFIGURATION: "{nonsense"})
    await harness.becomes({"east": 3, "north": 3})
    reason = reasons.EVENT_PARSE_MIGRATION_CONFIGURATION
    (emitted,) = [event[2] for event in await harness.events() if event[1] == reason]
    assert emitted.startswith(f"annotation {names.MIGRATION_CONFIGURATION} is not followed: ")
    request = json.dumps({"replicasMigrations": [{"cluster": "east", "limitedCapacity": 1}]})
    await harness.patch_object("web", {"metadata": {"annotations": {names.MIGRATION_CONFIGURATION: request}}})
    federated = await harness.becomes({"east": 1, "north": 5})
    applied = federated["metadata"]["annotations"][names.APPLIED_MIGRATION_CONFIGURATION]
    assert json.loads(applied) == {"limitedCapacity": {"east": 1}}


async def test_objects_that_go_are_forgotten(harness: Harness) -> None:
    await harness.deployment(policy="missing")
    await harness.condition("False")
    assert harness.schedule.cache.unschedulable
    await harness.client.delete(FEDERATED_OBJECTS, "web-deployments.apps", "default")

    async def is_forgotten() -> bool:
        return not harness.schedule.cache.unschedulable

    await harness.until(is_forgotten)


async def test_a_broken_policy_keeps_the_version_before_in_force(harness: Harness) -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"tier": "front"}}}
    await harness.policy("p", resourceSelectors=[selector])
    await harness.deployment(labels={"tier": "front"})
    await harness.becomes({"east": None, "north": None, "west": None})
    broken = {"matchExpressions": [{"key": "tier", "operator": "In"}]}
    await harness.patch(
        PROPAGATION_POLICIES,
        "p",
        {"spec": {"resourceSelectors": [{**selector, "labelSelector": broken}]}},
        namespace="default",
    )

    async def is_told() -> bool:
        return reasons.EVENT_INVALID_PROPAGATION_POLICY in [event[1] for event in await harness.events()]

    await harness.until(is_told)
    await harness.idle()
    assert "conditions" not in ((await harness.get()).get("status") or {})


async def test_a_suspicious_policy_is_in_force_and_gets_an_event(harness: Harness) -> None:
    await harness.policy("p", maxClusters=0)

    async def is_told() -> bool:
        said = [message for _, reason, message in await harness.events() if reason == "InvalidPropagationPolicy"]
        return said == ["spec.maxClusters: 0 lets nothing be placed; leave it out for no limit"]

    await harness.until(is_told)
    await harness.deployment(policy="p")
    await harness.condition("False", "NoFeasibleCluster")


async def test_an_invalid_profile_is_reported_when_it_is_written(harness: Harness) -> None:
    await harness.profile("p", plugins={"select": {"enabled": [{"name": "MaxCluster"}]}})

    async def is_told() -> bool:
        said = [message for _, reason, message in await harness.events() if reason == "InvalidSchedulingProfile"]
        return said == ["spec.plugins.select.enabled: MaxCluster runs there already; disable it to change its place"]

    await harness.until(is_told)


async def test_changed_labels_of_a_policy_requeue_nothing(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p")
    await harness.becomes({"east": None, "north": None, "west": None})
    await harness.patch(PROPAGATION_POLICIES, "p", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    await harness.idle()
    assert harness.writes() == 1


async def test_a_deleted_profile_is_reported(harness: Harness) -> None:
    await harness.profile("mine")
    await harness.policy("p", schedulingProfile="mine")
    await harness.deployment(policy="p")
    await harness.becomes({"east": None, "north": None, "west": None})
    await harness.patch(SCHEDULING_PROFILES, "mine", {"metadata": {"labels": {"a": "b"}}})
    await harness.client.delete(SCHEDULING_PROFILES, "mine")
    await harness.condition("False", REASON_PROFILE_NOT_FOUND)
    assert await harness.placed() == {"east": None, "north": None, "west": None}


async def test_an_object_with_invalid_pending_controllers_is_ignored(harness: Harness) -> None:
    await harness.policy("p")
    await harness.deployment(policy="p", annotations={names.PENDING_CONTROLLERS: "{nonsense"})
    await harness.idle()
    assert harness.writes() == 0


async def test_a_withdrawn_migration_request_is_withdrawn(harness: Harness) -> None:
    request = json.dumps({"replicasMigrations": [{"cluster": "east", "limitedCapacity": 1}]})
    await harness.policy("p", schedulingMode="Divide", placement=weights(east=1, north=1))
    await harness.deployment(policy="p", annotations={names.MIGRATION_CONFIGURATION: request})
    await harness.becomes({"east": 1, "north": 5})
    await harness.patch_object("web", {"metadata": {"annotations": {names.MIGRATION_CONFIGURATION: None}}})

    async def is_withdrawn() -> bool:
        return names.APPLIED_MIGRATION_CONFIGURATION not in (await harness.get())["metadata"]["annotations"]

    await harness.until(is_withdrawn)


class Remote:
    """A remote filter that accepts the configured clusters."""

    def filter_clusters(self, unit: Any, clusters: Any, state: Any) -> Any:
        responses = yield [PluginRequest(cluster.name, b"") for cluster in clusters]
        return [
            error(response.error) if response.error else SUCCESS if response.status == 200 else unschedulable("no")
            for response in responses
        ]


class Service:
    """Responds for the remote filter, without a network."""

    def __init__(self) -> None:
        self.is_up = True

    async def post(self, connection: Any, body: bytes, headers: Any, *, timeout_s: float) -> WebhookResponse:
        if not self.is_up:
            return WebhookResponse(0, error="down")
        return WebhookResponse(200 if connection.server == "west" else 404)


@pytest.mark.parametrize("is_driven", [True, False])
async def test_a_remote_plugin_decides_with_us_and_its_failure_keeps_the_placement(is_driven: bool) -> None:
    service = Service()
    caller = RemoteCaller(RetryingWebhookClient(service, clock=SystemClock()))
    plugins = load_plugins().with_plugin("remote", lambda _: Remote())
    async with schedule_harness(plugins, caller if is_driven else None) as harness:
        for name in ("east", "west"):
            await harness.cluster(name)
        await harness.profile("r", plugins={"filter": {"enabled": [{"type": "Webhook", "name": "remote"}]}})
        await harness.policy("p", schedulingProfile="r")
        await harness.deployment(policy="p")
        if not is_driven:
            condition = await harness.condition("False", "PluginFailed")
            assert condition["message"] == "remote failed in filter: remote plugins are switched off"
            return
        await harness.becomes({"west": None})
        service.is_up = False
        await harness.patch(PROPAGATION_POLICIES, "p", {"spec": {"maxClusters": 2}}, namespace="default")
        await harness.condition("False", "PluginFailed")
        assert await harness.placed() == {"west": None}
