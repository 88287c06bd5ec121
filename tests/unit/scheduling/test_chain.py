"""The chain of a decision: the order of its gates, and a step that no module of the scheduler knows."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.features.podgroups.test_rules import PODS
from tests.unit.scheduling.test_attempt import MINE, TYPE, Inputs, a_federated, a_policy

from federation.api import names
from federation.features.catalogue import FEATURES, decision_chain
from federation.planning.guard.earliervolumes import EarlierVolumes
from federation.planning.podgroups import POD_GROUP, PodGroup
from federation.scheduling.answers import Due, Wait
from federation.scheduling.assessment import assess
from federation.scheduling.attempt import start_attempt
from federation.scheduling.chain import ORDER, Gate, Shape, Step, to_chain
from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.testing import NOW
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.gates import GATES
from federation.scheduling.jobqueues import QueueIndex
from federation.scheduling.names import KUEUE_QUEUE_NAME, REASON_CLAIMS_NOT_KNOWN
from federation.scheduling.occasions import Occasion
from federation.scheduling.question import Question
from federation.scheduling.shapes import SHAPES

REST = Wait("TeamRests", "team a rests")
TEAM = ShapeKey("team", "")


class TeamRests(Gate):
    """An example of a gate that only its feature knows."""

    name = "team-rests"

    def ask(self, question: Question) -> Wait | None:
        return REST if question.template["metadata"]["name"] == "web" else None


class TeamName(Shape):
    """An example of a shape that only its feature knows."""

    name = "team-name"

    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        return TEAM.on(unit, "a")


def a_world(*steps: Step, policy: dict[str, Any] | None = None) -> Inputs:
    inputs = Inputs(policy or a_policy())
    spine = [*GATES, *SHAPES, *(step for feature in FEATURES for step in feature.steps())]
    inputs.chain = to_chain([*spine, *steps])
    return inputs


def test_every_step_of_the_product_has_its_place_in_the_table() -> None:
    chain = decision_chain()
    listed = [step.name for step in (*chain.gates, *chain.shapes, *chain.permits)]
    assert listed == [name for name in ORDER if name]
    assert len(set(listed)) == len(listed)


def test_a_step_that_the_table_does_not_list_is_asked_before_nothing_has_changed() -> None:
    inputs = a_world(TeamRests(), TeamName())
    assert [gate.name for gate in inputs.chain.gates][-3:] == ["team-rests", "unchanged", "volumes-listed"]
    _, assessment = inputs.assess(a_federated())
    assert assessment == REST
    _, assessment = a_world(TeamName()).assess(a_federated())
    assert isinstance(assessment, Due)
    assert TEAM.of(assessment.unit) == "a"
    assert TEAM.of(replace(assessment.unit, shapes={})) == ""


def test_a_gate_can_call_for_a_decision_about_which_nothing_changed() -> None:
    class Calls(Gate):
        name = "calls"

        def ask(self, question: Question) -> None:
            return None

        def calls(self, question: Question) -> bool:
            return True

    inputs = Inputs(a_policy())
    _, first = inputs.assess(a_federated())
    assert isinstance(first, Due)
    placed = a_federated(**{names.SCHEDULING_TRIGGERS: first.triggers})
    placement = [{"cluster": "east"}]
    placed["spec"]["placements"] = [{"controller": names.GLOBAL_SCHEDULER, "placement": placement}]
    assert not isinstance(inputs.assess(placed)[1], Due)
    assert isinstance(a_world(Calls()).assess(placed)[1], Due)


def test_an_object_with_volumes_waits_for_the_lists_of_claims_when_it_would_be_decided() -> None:
    inputs = Inputs(a_policy())
    attempt = start_attempt(a_federated(), TYPE, inputs.policies, EarlierVolumes(is_awaited=True))
    assert attempt is not None
    waits = assess(attempt, inputs, inputs.chain, inputs.clusters.snapshot(), Occasion(NOW))
    assert isinstance(waits, Wait)
    assert not waits.reason, "nothing is reported"
    assert waits.after_s == 1.0
    resting = a_world(TeamRests())
    assert assess(attempt, resting, resting.chain, resting.clusters.snapshot(), Occasion(NOW)) == REST


def test_a_control_plane_without_features_decides() -> None:
    inputs = Inputs(a_policy())
    inputs.chain = to_chain([*GATES, *SHAPES])
    assert isinstance(inputs.assess(a_federated())[1], Due)


REASONS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "no-scheduling": ({}, {names.NO_SCHEDULING: "true"}),
    "policy": ({"policy": "missing"}, {}),
    "profile": ({"profile": "missing"}, {}),
    "queue": ({"queue": "jobs"}, {}),
    "claims": ({"claims": True}, {}),
    "pod-group": ({"group": True}, {POD_GROUP.name: POD_GROUP.text(PodGroup("g", waits="g is not complete"))}),
    "suspension": ({"suspended": True}, {}),
}
"""How an object gets each reason to wait: what it is made of, and annotations."""
SAID = {
    "no-scheduling": "Skipped",
    "policy": "PolicyNotFound",
    "profile": "ProfileNotFound",
    "queue": names.REASON_QUEUED,
    "claims": REASON_CLAIMS_NOT_KNOWN,
    "pod-group": names.REASON_POD_GROUP,
    "suspension": "SchedulingSuspended",
}


def _answer(reasons: tuple[str, ...]) -> str:
    parts: dict[str, Any] = {}
    annotations: dict[str, str] = {}
    for reason in reasons:
        parts |= REASONS[reason][0]
        annotations |= REASONS[reason][1]
    spec: dict[str, Any] = {"schedulingProfile": parts.get("profile", "")}
    if "suspended" in parts:
        spec["suspension"] = {"scheduling": True}
    inputs = Inputs(a_policy(**spec))
    queues = inputs.index(QueueIndex)
    assert queues is not None
    queues.put({"metadata": {"namespace": "default", "name": "jobs"}})
    federated = a_federated(policy=parts.get("policy", "p"), pending=MINE, **annotations)
    template = federated["spec"]["template"]
    labels = template["metadata"].setdefault("labels", {})
    template.update(apiVersion="v1", kind="Pod", spec={"containers": [{"name": "main"}]})
    if "queue" in parts:
        labels[KUEUE_QUEUE_NAME] = parts["queue"]
    if "group" in parts:
        labels["pod-group.scheduling.sigs.k8s.io/name"] = "g"
    if "claims" in parts:
        template["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    _, assessment = inputs.assess(federated, type_=PODS)
    return assessment.reason if isinstance(assessment, Wait) else type(assessment).__name__


@pytest.mark.parametrize("reason", SAID)
def test_each_gate_says_its_reason(reason: str) -> None:
    assert _answer((reason,)) == SAID[reason]


@pytest.mark.parametrize("pair", [p for p in itertools.combinations(SAID, 2) if p != ("queue", "pod-group")], ids=str)
def test_of_two_reasons_the_one_that_comes_first_in_the_table_is_said(pair: tuple[str, str]) -> None:
    first = min(pair, key=ORDER.index)
    assert _answer(pair) == SAID[first]


def test_a_pod_of_a_group_that_its_leader_waits_for_has_no_queue_of_its_own() -> None:
    assert _answer(("queue", "pod-group")) == names.REASON_POD_GROUP


TAINT = {"key": names.TAINT_DRAIN, "effect": "NoExecute"}
TOLERATION = {"tolerations": [{"key": names.TAINT_DRAIN, "operator": "Exists"}]}
SUSPENDED = {"suspension": {"scheduling": True}}


@pytest.mark.parametrize(
    ("spec", "annotations", "taints", "is_removed", "goes"),
    [
        (SUSPENDED, {}, [], False, False),
        (SUSPENDED, {}, [TAINT], False, True),
        (SUSPENDED, {}, [{**TAINT, "effect": "NoSchedule"}], False, False),
        (SUSPENDED, {}, [{**TAINT, "key": "dedicated"}], False, False),
        (SUSPENDED | TOLERATION, {}, [TAINT], False, False),
        (SUSPENDED, {}, [], True, True),
        ({}, {names.NO_SCHEDULING: "true"}, [], False, False),
        ({}, {names.NO_SCHEDULING: "true"}, [TAINT], False, True),
        ({}, {names.NO_SCHEDULING: "true"}, [], True, True),
    ],
)
@pytest.mark.parametrize("namespace", ["default", ""])
def test_a_drain_or_removal_by_an_administrator_passes_what_users_of_a_namespace_hold(
    spec: dict[str, Any],
    annotations: dict[str, str],
    taints: list[dict[str, str]],
    is_removed: bool,
    goes: bool,
    namespace: str,
) -> None:
    policy = a_policy(reschedulePolicy={"rescheduleWhen": {"clusterJoined": True}}, **spec)
    policy["metadata"] = {"name": "p", "namespace": namespace} if namespace else {"name": "p"}
    inputs = Inputs(policy)
    annotations = {**annotations, names.SCHEDULING_TRIGGERS: "{}"}
    placed = a_federated(**annotations)
    if not namespace:
        placed["metadata"]["labels"] = {names.CLUSTER_PROPAGATION_POLICY_LABEL: "p"}
    placed["spec"]["placements"] = [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_removed else {}
    conditions = [{"type": "Joined", "status": "True"}]
    inputs.clusters.update(
        {"metadata": {"name": "east", **gone}, "spec": {"taints": taints}, "status": {"conditions": conditions}}
    )
    # A ClusterPropagationPolicy is an administrator's own word.
    is_held_by_administrator = not namespace and "suspension" in spec
    assert isinstance(inputs.assess(placed)[1], Due) is (goes and not is_held_by_administrator)
