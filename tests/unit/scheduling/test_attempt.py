"""Scheduling attempts: when one starts, and the four assessments."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.mergepatch import without_nulls
from federation.features.catalogue import decision_chain
from federation.scheduling.answers import Assessment, Deferred, Due, Skipped, Wait
from federation.scheduling.assessment import assess, tolerated_until
from federation.scheduling.attempt import SchedulingAttempt, start_attempt
from federation.scheduling.attemptpatches import placement_patch, unchanged_patch
from federation.scheduling.framework.moving import ENDED_TOLERATIONS
from federation.scheduling.framework.testing import NOW
from federation.scheduling.framework.types import Pods
from federation.scheduling.names import REASON_POLICY_NOT_FOUND, REASON_PROFILE_NOT_FOUND, REBALANCED
from federation.scheduling.occasions import Occasion, UnitOptions
from federation.scheduling.pendingreplicas import duplicate_reason
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.world import World

TYPES = {t.name: t for t in map(from_config, default_type_configs())}
TYPE = TYPES["deployments.apps"]
MINE = f'[["{names.GLOBAL_SCHEDULER}"]]'


class Inputs(World):
    """The world of an attempt."""

    def __init__(self, *policies: dict[str, Any], options: UnitOptions | None = None) -> None:
        self.chain = decision_chain()
        super().__init__(self.chain.reads, options=options)
        for name in ("east", "west"):
            self.clusters.update({"metadata": {"name": name}, "status": {"conditions": [_true("Joined")]}})
        for policy in policies:
            self.policies.put(compile_policy(policy))

    def assess(
        self,
        federated: dict[str, Any],
        *,
        is_unschedulable: bool = False,
        type_: FederatedType = TYPE,
        now: datetime = NOW,
    ) -> tuple[SchedulingAttempt, Assessment]:
        attempt = start_attempt(federated, type_, self.policies)
        assert attempt is not None
        return attempt, assess(attempt, self, self.chain, self.clusters.snapshot(), Occasion(now, is_unschedulable))


def _true(type_: str) -> dict[str, str]:
    return {"type": type_, "status": "True"}


def a_policy(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": {"schedulingMode": "Divide", **spec}}


def a_federated(*, policy: str = "p", pending: str = MINE, replicas: int = 4, **annotations: str) -> dict[str, Any]:
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas},
    }
    return {
        "metadata": {
            "name": "web-deployments.apps",
            "namespace": "default",
            "resourceVersion": "1",
            "labels": {names.PROPAGATION_POLICY_LABEL: policy} if policy else {},
            "annotations": {names.PENDING_CONTROLLERS: pending, **annotations},
        },
        "spec": {"template": template},
    }


def test_no_attempt_starts_while_another_controller_is_pending_or_the_pipeline_is_invalid() -> None:
    policies = Inputs().policies
    assert start_attempt(a_federated(pending='[["other"],["x"]]'), TYPE, policies) is None
    assert start_attempt(a_federated(pending="nonsense"), TYPE, policies) is None
    assert start_attempt(a_federated(pending="[]"), TYPE, policies) is not None


def test_duplicate_mode_of_a_kind_without_replicas_has_a_reason() -> None:
    for type_, mode, said in (
        (TYPE, "Divide", ""),
        (TYPES["daemonsets.apps"], "Duplicate", ""),
        (TYPES["daemonsets.apps"], "Divide", "but FederatedTypeConfig daemonsets.apps has no pathDefinition"),
    ):
        attempt, assessment = Inputs(a_policy(schedulingMode=mode)).assess(a_federated(), type_=type_)
        assert isinstance(assessment, Due)
        reason = duplicate_reason(attempt, assessment)
        assert said in reason
        assert bool(said) == bool(reason)
        gang = replace(assessment, unit=replace(assessment.unit, pods=Pods(is_gang=True)))
        assert duplicate_reason(attempt, gang) == "", "a gang is in one cluster as a whole"


@pytest.mark.parametrize(("mode", "annotation"), [("Duplicate", "Divide"), ("Divide", "Duplicate")])
def test_the_mode_of_the_annotation_decides_whether_an_object_is_divided(mode: str, annotation: str) -> None:
    federated = a_federated(**{names.SCHEDULING_MODE: annotation})
    _, assessment = Inputs(a_policy(schedulingMode=mode)).assess(federated)
    assert isinstance(assessment, Due)
    assert assessment.divides is (annotation == "Divide")


def test_an_object_is_due_until_it_is_placed_by_current_inputs() -> None:
    inputs = Inputs(a_policy())
    federated = a_federated()
    attempt, assessment = inputs.assess(federated)
    assert isinstance(assessment, Due)
    patch, is_moved = placement_patch(
        attempt, assessment, {"east": 3, "west": 1}, "2/2 clusters are available; " + "x" * 600
    )
    assert is_moved
    assert patch is not None
    summary = patch["metadata"]["annotations"][names.SCHEDULING_SUMMARY]
    assert summary.startswith("2/2 clusters are available; xxx")
    assert len(summary) == 513
    # All later controllers have processed the object.
    annotations = without_nulls({**patch["metadata"]["annotations"], names.PENDING_CONTROLLERS: "[]"})
    metadata = {**federated["metadata"], "annotations": annotations}
    after = {**federated, "metadata": metadata, "spec": {**federated["spec"], **patch["spec"]}}
    attempt, assessment = inputs.assess(after)
    assert isinstance(assessment, Deferred)
    assert not assessment.comparison.deferred_reasons
    assert attempt.current() == {"east": 3, "west": 1}
    _, assessment = inputs.assess(after, is_unschedulable=True)
    assert isinstance(assessment, Due)


def test_an_unschedulable_assessment_names_the_reason() -> None:
    _, assessment = Inputs().assess(a_federated())
    assert assessment == Wait(REASON_POLICY_NOT_FOUND, "PropagationPolicy default/p does not exist")
    _, assessment = Inputs(a_policy(schedulingProfile="gpu")).assess(a_federated())
    assert isinstance(assessment, Wait)
    assert assessment.reason == REASON_PROFILE_NOT_FOUND


def test_a_skipped_object_only_advances_its_pending_controllers() -> None:
    for federated in (a_federated(policy=""), a_federated(**{names.NO_SCHEDULING: "true"})):
        attempt, assessment = Inputs(a_policy()).assess(federated)
        assert isinstance(assessment, Skipped)
        patch = {"metadata": {"resourceVersion": "1", "annotations": {names.PENDING_CONTROLLERS: "[]"}}}
        assert unchanged_patch(attempt, assessment) == patch


def test_a_migration_that_cannot_be_understood_is_a_problem_and_changes_nothing() -> None:
    attempt = start_attempt(a_federated(**{names.MIGRATION_CONFIGURATION: "nonsense"}), TYPE, PolicyIndex())
    assert attempt is not None
    assert attempt.problem.startswith("not JSON")
    assert attempt.annotations == {}


WHEN = {"reschedulePolicy": {"rescheduleWhen": {"policyContentChanged": True}}}
END = NOW + timedelta(seconds=300)


def _lost_since(inputs: Inputs, cluster: str, added: datetime | None) -> None:
    """Taint a cluster as unreachable, or make it ready again."""
    conditions = [_true("Joined"), {"type": "Ready", "status": "True" if added is None else "Unknown"}]
    effects = () if added is None else ("NoSchedule", "NoExecute")
    taints = [
        {"key": names.TAINT_UNREACHABLE, "effect": effect, "timeAdded": to_rfc3339(added or NOW)} for effect in effects
    ]
    inputs.clusters.update(
        {"metadata": {"name": cluster}, "spec": {"taints": taints}, "status": {"conditions": conditions}}
    )


def _placed(inputs: Inputs, triggers: str, *clusters: str, **annotations: str) -> dict[str, Any]:
    federated = a_federated(**{names.SCHEDULING_TRIGGERS: triggers, **annotations})
    placement = [{"cluster": cluster} for cluster in clusters]
    federated["spec"]["placements"] = [{"controller": names.GLOBAL_SCHEDULER, "placement": placement}]
    return federated


def _triggers(inputs: Inputs, federated: dict[str, Any], now: datetime = NOW) -> str:
    _, due = inputs.assess(federated, is_unschedulable=True, now=now)
    assert isinstance(due, Due)
    return due.triggers


def test_an_object_leaves_a_lost_cluster_when_its_toleration_ends_and_may_return_afterwards() -> None:
    inputs = Inputs(a_policy(**WHEN))
    before = _triggers(inputs, a_federated())
    _lost_since(inputs, "east", NOW)
    placed = _placed(inputs, before, "east", "west")
    attempt, assessment = inputs.assess(placed, now=END - timedelta(seconds=1))
    assert isinstance(assessment, Deferred), "the outage itself needs no decision"
    assert tolerated_until(attempt, inputs, inputs.clusters.snapshot()) == {"east": END}

    _, assessment = inputs.assess(placed, now=END)
    assert isinstance(assessment, Due)
    assert assessment.comparison.changed == ("tolerationsEnded",)
    assert ENDED_TOLERATIONS.of(assessment.unit).keys() == {"east"}
    _, elsewhere = inputs.assess(_placed(inputs, before, "west"), now=END)
    assert isinstance(elsewhere, Deferred), "objects in other clusters are not concerned"

    left = _placed(inputs, assessment.triggers, "west")
    _, assessment = inputs.assess(left, now=END + timedelta(hours=1))
    assert isinstance(assessment, Deferred)
    _lost_since(inputs, "east", None)
    _, assessment = inputs.assess(left, now=END + timedelta(hours=1))
    assert isinstance(assessment, Due)
    assert ENDED_TOLERATIONS.of(assessment.unit) == {}
    _, assessment = inputs.assess(_placed(inputs, assessment.triggers, "west"), now=END + timedelta(hours=1))
    assert isinstance(assessment, Deferred)


@pytest.mark.parametrize(
    ("spec", "annotations"),
    [
        ({"reschedulePolicy": {"disableRescheduling": True}}, {}),
        ({}, {}),
        ({**WHEN, "stickyCluster": True}, {}),
        (WHEN, {names.STICKY_CLUSTER: "true"}),
        ({**WHEN, "tolerations": [{"operator": "Exists"}]}, {}),
    ],
    ids=["disabled", "no rescheduleWhen", "sticky", "sticky by annotation", "tolerates everything"],
)
def test_an_object_that_stays_in_any_case_has_no_end(spec: dict[str, Any], annotations: dict[str, str]) -> None:
    inputs = Inputs(a_policy(**spec))
    _lost_since(inputs, "east", NOW)
    attempt, _ = inputs.assess(_placed(inputs, "", "east", **annotations))
    assert tolerated_until(attempt, inputs, inputs.clusters.snapshot()) == {}


def test_the_tolerations_of_the_annotation_count_and_the_default_is_an_option() -> None:
    inputs = Inputs(a_policy(**WHEN), options=UnitOptions(toleration_s=20))
    _lost_since(inputs, "east", NOW)
    own = f'[{{"key": "{names.TAINT_UNREACHABLE}", "operator": "Exists", "tolerationSeconds": 7}}]'
    for annotations, seconds in (({names.TOLERATIONS: own}, 7), ({}, 20)):
        attempt, _ = inputs.assess(_placed(inputs, "", "east", **annotations))
        found = tolerated_until(attempt, inputs, inputs.clusters.snapshot())
        assert found == {"east": NOW + timedelta(seconds=seconds)}
    bare = replace(attempt, federated={**attempt.federated, "metadata": {"name": "x"}})
    assert tolerated_until(bare, inputs, inputs.clusters.snapshot()) == found


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ({"disableFollowerScheduling": True}, names.ENABLE_FOLLOWER_SCHEDULING),
        ({"autoMigration": {"when": {"podUnschedulableFor": "1m"}}}, names.POD_UNSCHEDULABLE_THRESHOLD),
        (
            {"failover": {"application": {"decisionConditions": {"tolerationSeconds": 7}}}},
            names.APPLICATION_FAILOVER_RULES,
        ),
    ],
)
def test_what_a_policy_says_beside_the_placement_is_written_without_a_decision(spec: dict[str, Any], key: str) -> None:
    inputs = Inputs(a_policy(**WHEN, **spec))
    _, before = inputs.assess(a_federated())
    assert isinstance(before, Due)
    inputs = Inputs(a_policy(**spec))
    attempt, assessment = inputs.assess(_placed(inputs, before.triggers, "east", "west"))
    assert isinstance(assessment, Deferred)
    patch = unchanged_patch(attempt, assessment)
    assert patch is not None
    assert patch["metadata"]["annotations"][key]


def test_the_triggers_of_kubeadmiral_do_not_hide_that_a_toleration_ended() -> None:
    inputs = Inputs(a_policy(**WHEN))
    _lost_since(inputs, "east", NOW)
    foreign = '{"resourceRequest":{"MilliCPU":0},"replicaCount":4,"policyName":"p","clusters":["east","west"]}'
    _, assessment = inputs.assess(_placed(inputs, foreign, "east", "west"), now=NOW)
    assert isinstance(assessment, Deferred)
    _, assessment = inputs.assess(_placed(inputs, foreign, "east", "west"), now=END)
    assert isinstance(assessment, Due)


def test_a_rebalance_ignores_where_replicas_are_for_one_decision() -> None:
    inputs = Inputs(a_policy())
    _, before = inputs.assess(a_federated())
    asked = a_federated(**{names.REBALANCE: "2026-01-01T00:00:00Z"})
    attempt, assessment = inputs.assess(asked)
    assert isinstance(before, Due)
    assert isinstance(assessment, Due)
    assert (before.unit.avoid_disruption, assessment.unit.avoid_disruption) == (True, False)
    assert before.triggers != assessment.triggers  # so that an object that is placed becomes due
    patch, _ = placement_patch(attempt, assessment, {"east": 2, "west": 2}, "")
    assert patch is not None
    assert patch["metadata"]["annotations"][REBALANCED] == "2026-01-01T00:00:00Z"
    _, after = inputs.assess(a_federated(**{names.REBALANCE: "a", REBALANCED: "a"}))
    assert isinstance(after, Due)
    assert after.unit.avoid_disruption


def test_a_rebalance_that_the_guard_holds_is_still_asked_for() -> None:
    attempt, assessment = Inputs(a_policy()).assess(a_federated(**{names.REBALANCE: "a"}))
    assert isinstance(assessment, Due)
    patch, _ = placement_patch(attempt, assessment, {"east": 4}, "", is_held=True)
    assert patch is not None
    assert REBALANCED not in patch["metadata"]["annotations"]
