"""Scheduling attempts: when one starts, and the four assessments."""

from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.apimachinery.mergepatch import without_nulls
from federation.scheduling.annotationswitch import AnnotationPolicy
from federation.scheduling.attempt import (
    Assessment,
    Deferred,
    Due,
    SchedulingAttempt,
    Skipped,
    Unschedulable,
    assess,
    duplicate_reason,
    placement_patch,
    start_attempt,
    unchanged_patch,
)
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.profiles import Profiles
from federation.scheduling.snapshot import ClusterCache
from federation.scheduling.triggers import TriggerSource
from federation.scheduling.workloadspreads import SpreadIndex

TYPES = {t.name: t for t in map(from_config, default_type_configs())}
TYPE = TYPES["deployments.apps"]
MINE = f'[["{names.GLOBAL_SCHEDULER}"]]'


class Inputs:
    """The inputs of an attempt."""

    def __init__(self, *policies: dict[str, Any]) -> None:
        self.policies, self.profiles, self.triggers = PolicyIndex(), Profiles(), TriggerSource()
        self.annotation_policy = AnnotationPolicy()
        self.spreads = SpreadIndex()
        self.clusters = ClusterCache()
        for name in ("east", "west"):
            self.clusters.update({"metadata": {"name": name}, "status": {"conditions": [_true("Joined")]}})
        for policy in policies:
            self.policies.put(compile_policy(policy))

    def assess(
        self, federated: dict[str, Any], *, is_unschedulable: bool = False, type_: FederatedType = TYPE
    ) -> tuple[SchedulingAttempt, Assessment]:
        attempt = start_attempt(federated, type_, self.policies)
        assert attempt is not None
        return attempt, assess(attempt, self, self.clusters.snapshot(), is_unschedulable=is_unschedulable)


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
    assert assessment == Unschedulable(names.REASON_POLICY_NOT_FOUND, "PropagationPolicy default/p does not exist")
    _, assessment = Inputs(a_policy(schedulingProfile="gpu")).assess(a_federated())
    assert isinstance(assessment, Unschedulable)
    assert assessment.reason == names.REASON_PROFILE_NOT_FOUND


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
