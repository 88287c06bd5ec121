"""What a turn comes to: the four findings, and who has a turn at all."""

from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.planning.mergepatch import without_nulls
from federation.scheduling.annotationswitch import AnnotationSwitch
from federation.scheduling.matching import PolicyIndex
from federation.scheduling.policy import compile_policy
from federation.scheduling.profiles import Profiles
from federation.scheduling.snapshot import ClusterCache
from federation.scheduling.triggers import TriggerSource
from federation.scheduling.turn import (
    Deferred,
    Due,
    Finding,
    Stuck,
    Turn,
    Untouched,
    assess,
    copied_because,
    kept,
    open_turn,
    placed,
)

TYPES = {t.name: t for t in map(from_config, default_type_configs())}
TYPE = TYPES["deployments.apps"]
MINE = f'[["{names.GLOBAL_SCHEDULER}"]]'


class Inputs:
    """What a turn depends on."""

    def __init__(self, *policies: dict[str, Any]) -> None:
        self.policies, self.profiles, self.triggers = PolicyIndex(), Profiles(), TriggerSource()
        self.switch = AnnotationSwitch()
        self.clusters = ClusterCache()
        for name in ("east", "west"):
            self.clusters.update({"metadata": {"name": name}, "status": {"conditions": [_true("Joined")]}})
        for policy in policies:
            self.policies.put(compile_policy(policy))

    def assess(
        self, fed_object: dict[str, Any], *, is_waiting: bool = False, type_: FederatedType = TYPE
    ) -> tuple[Turn, Finding]:
        turn = open_turn(fed_object, type_, self.policies)
        assert turn is not None
        return turn, assess(turn, self, self.clusters.snapshot(), is_waiting=is_waiting)


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


def test_nobody_has_a_turn_while_another_controller_is_first_or_the_pipeline_is_broken() -> None:
    policies = Inputs().policies
    assert open_turn(a_federated(pending='[["other"],["x"]]'), TYPE, policies) is None
    assert open_turn(a_federated(pending="nonsense"), TYPE, policies) is None
    assert open_turn(a_federated(pending="[]"), TYPE, policies) is not None


def test_that_a_kind_without_replicas_is_copied_is_told() -> None:
    for type_, mode, said in (
        (TYPE, "Divide", ""),
        (TYPES["statefulsets.apps"], "Duplicate", ""),
        (TYPES["statefulsets.apps"], "Divide", "but FederatedTypeConfig statefulsets.apps has no pathDefinition"),
    ):
        turn, finding = Inputs(a_policy(schedulingMode=mode)).assess(a_federated(), type_=type_)
        assert isinstance(finding, Due)
        told = copied_because(turn, finding)
        assert said in told
        assert bool(said) == bool(told)


def test_an_object_is_due_until_it_is_placed_by_what_holds_now() -> None:
    inputs = Inputs(a_policy())
    fed_object = a_federated()
    turn, finding = inputs.assess(fed_object)
    assert isinstance(finding, Due)
    patch, is_moved = placed(turn, finding, {"east": 3, "west": 1}, "2/2 clusters are available; " + "x" * 600)
    assert is_moved
    assert patch is not None
    summary = patch["metadata"]["annotations"][names.SCHEDULING_SUMMARY]
    assert summary.startswith("2/2 clusters are available; xxx")
    assert len(summary) == 513
    # Everybody behind the scheduler had its turn meanwhile.
    annotations = without_nulls({**patch["metadata"]["annotations"], names.PENDING_CONTROLLERS: "[]"})
    metadata = {**fed_object["metadata"], "annotations": annotations}
    after = {**fed_object, "metadata": metadata, "spec": {**fed_object["spec"], **patch["spec"]}}
    turn, finding = inputs.assess(after)
    assert isinstance(finding, Deferred)
    assert not finding.verdict.deferred_reasons
    assert turn.current() == {"east": 3, "west": 1}
    _, finding = inputs.assess(after, is_waiting=True)
    assert isinstance(finding, Due)


def test_what_keeps_a_decision_from_being_made_is_named() -> None:
    _, finding = Inputs().assess(a_federated())
    assert finding == Stuck(names.REASON_POLICY_NOT_FOUND, "PropagationPolicy default/p does not exist")
    _, finding = Inputs(a_policy(schedulingProfile="gpu")).assess(a_federated())
    assert isinstance(finding, Stuck)
    assert finding.reason == names.REASON_PROFILE_NOT_FOUND


def test_what_the_scheduler_does_not_touch_only_passes_its_turn_on() -> None:
    for fed_object in (a_federated(policy=""), a_federated(**{names.NO_SCHEDULING: "true"})):
        turn, finding = Inputs(a_policy()).assess(fed_object)
        assert isinstance(finding, Untouched)
        patch = {"metadata": {"resourceVersion": "1", "annotations": {names.PENDING_CONTROLLERS: "[]"}}}
        assert kept(turn, finding) == patch


def test_a_migration_that_cannot_be_understood_is_a_problem_and_changes_nothing() -> None:
    turn = open_turn(a_federated(**{names.MIGRATION_CONFIGURATION: "nonsense"}), TYPE, PolicyIndex())
    assert turn is not None
    assert turn.problem.startswith("not JSON")
    assert turn.annotations == {}
