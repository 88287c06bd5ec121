"""Rules of WorkloadSpreads that the vectors do not show."""

from typing import Any

import pytest
from tests.support.spreads import CLONE_SET, RULES, a_spread

from federation.apiserver.semantics.validation.podpatches import unknown_fields
from federation.features.workloadspread.rules.references import parse_whitelist
from federation.features.workloadspread.rules.specvalidation import patch_warnings, validate_spread, validate_update

SECONDS = "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds"
A_B = [{"name": "a", "maxReplicas": 1}, {"name": "b"}]


def _fields(spread: dict[str, Any], **options: Any) -> list[str]:
    return [cause["field"] for cause in validate_spread(spread, RULES, **options)]


def _limited(*limits: Any) -> list[dict[str, Any]]:
    return [{"name": str(number), "maxReplicas": limit} for number, limit in enumerate(limits)]


@pytest.mark.parametrize(
    ("limits", "wrong"),
    [
        ((1, 2), []),
        (("50%", "50%"), []),
        (("20%", None), []),
        ((0, "0%", None), [1]),
        ((5, "50%"), [1]),
        (("50%", 5, "50%"), [1]),
        ((-1, 5), [0]),
        (("5", None), [0]),
        ((True, None), [0]),
        ((1.5, None), [0]),
        (("60%", "30%"), [0]),
        (("60%", "60%", "60%"), [1, 2]),
        (("+50%", "50%"), []),
    ],
)
def test_limits_are_of_one_kind_and_percentages_do_not_exceed_the_whole(limits: Any, wrong: list[int]) -> None:
    assert _fields(a_spread(_limited(*limits))) == [f"spec.subsets[{index}].maxReplicas" for index in wrong]


def test_stateful_sets_need_integers() -> None:
    assert _fields(a_spread(_limited("50%", None), "StatefulSet")) == ["spec.subsets[0].maxReplicas"]
    assert _fields(a_spread(_limited(5, None), "StatefulSet")) == []


@pytest.mark.parametrize(
    ("seconds", "subsets", "is_valid"),
    [(295, 2, True), (296, 2, False), (147, 3, True), (148, 3, False), (9999, 1, True), (0, 3, True), (None, 3, True)],
)
def test_pods_can_try_all_subsets_before_the_first_one_recovers(seconds: int, subsets: int, is_valid: bool) -> None:
    strategy = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": seconds}}
    fields = _fields(a_spread(_limited(*[None] * subsets), scheduleStrategy=strategy))
    assert fields == ([] if is_valid else ["spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds"])


@pytest.mark.parametrize(
    ("target", "is_valid"),
    [
        ({"apiVersion": "apps/v1", "kind": "CloneSet", "name": "x"}, False),
        ({"apiVersion": "apps.kruise.io/v1alpha1", "kind": "Deployment", "name": "x"}, False),
        ({"apiVersion": "batch/v1", "kind": "Job", "name": "x"}, True),
        ({"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "x"}, True),
        ({"apiVersion": "game.io/v9", "kind": "GameServerSet", "name": "x"}, True),
        ({"apiVersion": "v1", "kind": "GameServerSet", "name": "x"}, False),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "name": ""}, False),
    ],
)
def test_only_known_kinds_and_those_of_the_whitelist_can_be_targets(target: Any, is_valid: bool) -> None:
    whitelist = parse_whitelist('{"workloads":[{"Group":"game.io","Version":"v1","Kind":"GameServerSet"}]}')
    fields = _fields(a_spread(A_B, targetRef=target), whitelist=whitelist)
    assert fields == ([] if is_valid else ["spec.targetRef"])


def test_selectors_and_tolerations_follow_the_rules_of_kubernetes() -> None:
    wrong = {"matchLabels": {"app": "not a label value"}}
    assert _fields(a_spread(A_B, targetFilter={"selector": wrong})) == ["spec.targetFilter.selector.matchLabels"]
    assert _fields(a_spread(A_B, targetFilter={"selector": {}, "replicasPathList": ["spec.x"]})) == []
    tolerant = [{"name": "a", "tolerations": [{"key": "x", "operator": "Near"}]}]
    assert _fields(a_spread(tolerant)) == ["spec.subsets[0].tolerations[0].operator"]
    weighted = [{"name": "a", "preferredNodeSelector": [{"weight": 100, "preference": {}}, {"weight": 1}]}]
    assert _fields(a_spread(weighted)) == []
    unweighted = [{"name": "a", "preferredNodeSelector": [{"preference": {}}]}]
    assert _fields(a_spread(unweighted)) == ["spec.subsets[0].preferredNodeSelector[0].weight"]


def test_patches_are_checked_against_the_existing_workload() -> None:
    template = {"metadata": {}, "spec": {"containers": [{"name": "main", "image": "web"}]}}
    subsets = [{"name": "a", "patch": {"spec": {"restartPolicy": "Sometimes"}}}]
    field = ["spec.subsets[0].patch.spec.restartPolicy"]
    assert _fields(a_spread(subsets), workload={"spec": {"template": template}}) == field
    assert (
        _fields(a_spread(subsets, "Deployment"), workload={"kind": "Deployment", "spec": {"template": template}})
        == field
    )
    incomplete = [{"name": "a", "patch": {"spec": {"containers": [{"name": "new"}]}}}]
    without_image = ["spec.subsets[0].patch.spec.containers[0].image"]
    assert _fields(a_spread(incomplete), workload={"spec": {"template": template}}) == without_image
    for workload in ({"kind": "GameServerSet", "spec": {"template": template}}, {"kind": "CloneSet"}, None):
        assert _fields(a_spread(subsets), workload=workload) == field, "for no workload it can be valid"
        assert _fields(a_spread(incomplete), workload=workload) == []


def test_a_patch_must_keep_the_labels_by_which_the_workload_selects_its_pods() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}}
    workload = {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template}}
    for labels, expected in (({"app": "other"}, ["spec.subsets[0].patch.metadata.labels"]), ({"tier": "base"}, [])):
        subsets = [{"name": "a", "patch": {"metadata": {"labels": labels}}}]
        assert _fields(a_spread(subsets), workload=workload) == expected


def test_only_the_version_of_the_target_can_change() -> None:
    old, other = a_spread(A_B), a_spread(A_B, targetRef={**CLONE_SET, "name": "other"})
    newer = a_spread(A_B, targetRef={**CLONE_SET, "apiVersion": "apps.kruise.io/v1beta1"})
    assert validate_update(newer, old) == []
    assert [cause["field"] for cause in validate_update(other, old)] == ["spec.targetRef"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"targetRef": None}, "spec.targetRef"),
        ({"scheduleStrategy": {"type": "Random"}}, "spec.scheduleStrategy.type"),
        ({"scheduleStrategy": {"adaptive": {}}}, "spec.scheduleStrategy.type"),
        ({"scheduleStrategy": {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": -1}}}, SECONDS),
        ({"subsets": []}, "spec.subsets"),
        ({"subsets": [{}]}, "spec.subsets[0].name"),
        ({"subsets": [{"name": "a"}, {"name": "a"}]}, "spec.subsets[1].name"),
        ({"subsets": [{"name": "a", "requiredNodeSelector": {"matchExpressions": [{}]}}]}, None),
    ],
)
def test_parts_of_the_spec_are_required(spec: dict[str, Any], field: str | None) -> None:
    fields = _fields({"metadata": {"name": "ws"}, "spec": a_spread(A_B)["spec"] | spec})
    assert (
        fields == [field] if field else all(each.startswith("spec.subsets[0].requiredNodeSelector") for each in fields)
    )
    assert fields


def test_the_last_subset_of_an_adaptive_spread_has_no_limit() -> None:
    strategy = {"type": "Adaptive", "adaptive": {}}
    assert _fields(a_spread(_limited(1, 2), scheduleStrategy=strategy)) == ["spec.scheduleStrategy.adaptive"]
    assert _fields(a_spread(_limited(1), scheduleStrategy=strategy)) == []


def test_a_target_belongs_to_one_spread() -> None:
    spread = a_spread(A_B)
    other = {**spread, "metadata": {"name": "other"}}
    assert _fields(spread, others=[spread, other]) == ["spec.targetRef"]
    assert _fields(spread, others=[spread]) == []


def test_unknown_fields_of_patches_are_warnings() -> None:
    patch = {"spec": {"container": [], "containers": [{"name": "main", "resources": {"limit": {}}}]}}
    spread = a_spread([*A_B, {"name": "c", "patch": patch}])
    assert _fields(spread) == []
    assert patch_warnings(spread, unknown_fields) == [
        'unknown field "spec.subsets[2].patch.spec.container"',
        'unknown field "spec.subsets[2].patch.spec.containers[0].resources.limit"',
    ]
