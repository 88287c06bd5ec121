"""Workloads of subsets are rendered for server-side apply."""

from typing import Any

import pytest

from federation.api import names
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.features.uniteddeployment.names import SUBSET_REVISION_LABEL
from federation.features.uniteddeployment.rules.subsettemplate import (
    Target,
    is_outdated,
    name_prefix,
    render_workload,
    with_nodes,
    workload_name,
)
from federation.features.uniteddeployment.rules.subsetworkload import observe_workload, ordinal_of, stuck_pods
from federation.features.uniteddeployment.rules.workloadkinds import KINDS, WorkloadKind

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}


def kind_named(template: str) -> WorkloadKind:
    return next(kind for kind in KINDS if kind.template == template)


def a_united(kind: str = "deploymentTemplate", **spec: Any) -> dict[str, Any]:
    pods = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {
            "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            "template": {kind: {"metadata": {"labels": {"app": "web"}}, "spec": {"template": pods, **spec}}},
        },
    }


def rendered(kind: str, target: Target, subset: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return render_workload(a_united(kind, **spec), subset or {"name": "a"}, kind_named(kind), target, patch_pod)


def test_a_selector_of_expressions_alone_is_kept_and_narrowed_to_the_subset() -> None:
    selector = rendered("deploymentTemplate", Target("rev", 1))["spec"]["selector"]
    assert selector["matchExpressions"] == [{"key": "app", "operator": "Exists"}]
    assert selector["matchLabels"] == {names.SUBSET_NAME_LABEL: "a"}


def test_labels_of_the_selector_are_kept_and_narrowed_to_the_subset() -> None:
    united = a_united()
    united["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    workload = render_workload(united, {"name": "a"}, kind_named("deploymentTemplate"), Target("rev", 1), patch_pod)
    assert workload["spec"]["selector"] == {"matchLabels": {"app": "web", names.SUBSET_NAME_LABEL: "a"}}


def test_a_workload_has_the_labels_and_annotations_of_its_template() -> None:
    united = a_united()
    united["spec"]["template"]["deploymentTemplate"]["metadata"]["annotations"] = {"a": "b"}
    workload = render_workload(united, {"name": "a"}, kind_named("deploymentTemplate"), Target("rev", 1), patch_pod)
    assert workload["metadata"]["labels"]["app"] == "web"
    assert workload["metadata"]["annotations"]["a"] == "b"


@pytest.mark.parametrize("kind", ["statefulSetTemplate", "advancedStatefulSetTemplate"])
def test_stateful_sets_get_a_partition_unless_they_update_on_delete(kind: str) -> None:
    strategy = rendered(kind, Target("rev", 3, partition=2))["spec"]["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    on_delete = rendered(kind, Target("rev", 3, partition=2), updateStrategy={"type": "OnDelete"})
    assert on_delete["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_clone_sets_get_a_partition_and_keep_the_rest_of_their_strategy() -> None:
    workload = rendered("cloneSetTemplate", Target("rev", 3, partition=2), updateStrategy={"type": "InPlaceIfPossible"})
    assert workload["spec"]["updateStrategy"] == {"type": "InPlaceIfPossible", "partition": 2}


def test_a_limit_of_unavailable_pods_goes_into_rolling_updates_only() -> None:
    target = Target("rev", 3, unavailable_max=2)
    rolling = rendered("deploymentTemplate", target, strategy={"rollingUpdate": {"maxSurge": 1}})
    assert rolling["spec"]["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 2}}
    recreated = rendered("deploymentTemplate", target, strategy={"type": "Recreate"})
    assert recreated["spec"]["strategy"] == {"type": "Recreate"}


def test_a_parent_of_the_partition_that_is_no_object_is_replaced() -> None:
    workload = rendered("statefulSetTemplate", Target("rev", 1, 1), updateStrategy={"rollingUpdate": "x"})
    assert workload["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 1}


def test_the_patch_is_applied_last_and_can_replace_labels() -> None:
    subset = {"name": "a", "patch": {"metadata": {"labels": {SUBSET_REVISION_LABEL: "mine"}}}}
    workload = rendered("deploymentTemplate", Target("rev", 1), subset)
    assert workload["spec"]["template"]["metadata"]["labels"][SUBSET_REVISION_LABEL] == "mine"
    assert workload["metadata"]["labels"][SUBSET_REVISION_LABEL] == "rev"


def test_node_expressions_are_added_to_every_required_term() -> None:
    terms = [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}, {"matchFields": []}]
    spec = {"affinity": {"podAffinity": {}, "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}
    changed = with_nodes(spec, {"nodeSelectorTerm": {"matchExpressions": [ZONE], "matchFields": [{"key": "ignored"}]}})
    assert changed["affinity"]["podAffinity"] == {}
    assert changed["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "x", "operator": "Exists"}, ZONE]},
        {"matchFields": [], "matchExpressions": [ZONE]},
    ]


def test_a_subset_without_nodes_and_tolerations_leaves_the_pods_alone() -> None:
    assert with_nodes({"containers": []}, {"nodeSelectorTerm": {}, "tolerations": None}) == {"containers": []}


def test_tolerations_of_the_subset_follow_those_of_the_template() -> None:
    changed = with_nodes({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]})
    assert changed["tolerations"] == [{"key": "a"}, {"key": "b"}]


def test_names_are_stable_and_short_and_differ_by_kind_and_owner() -> None:
    united = a_united()
    names_ = {workload_name(united, "a", kind) for kind in KINDS}
    assert len(names_) == len(KINDS)
    assert workload_name(united, "a", KINDS[0]) == workload_name(a_united(), "a", KINDS[0])
    other = {**united, "metadata": {**united["metadata"], "uid": "v"}}
    assert workload_name(other, "a", KINDS[0]) not in names_
    long = {**united, "metadata": {**united["metadata"], "name": "x" * 100}}
    assert len(workload_name(long, "a", KINDS[0])) == 63


def test_a_subset_name_that_does_not_fit_into_a_name_is_left_out() -> None:
    assert name_prefix("web", "ecs") == "web-ecs-"
    assert name_prefix("web", "Not_A_Name") == "web-"
    assert name_prefix("w" * 240, "s" * 60) == "w" * 240 + "-"


def test_a_workload_is_outdated_when_what_was_written_differs() -> None:
    kind, target = kind_named("cloneSetTemplate"), Target("rev", 2, 1)
    workload = {**rendered("cloneSetTemplate", target), "status": {"replicas": 2, "updatedReplicas": 1}}
    seen = observe_workload(kind, workload, [], "rev")
    assert not is_outdated(seen, {"name": "a"}, target)
    for other in (Target("new", 2, 1), Target("rev", 3, 1), Target("rev", 2, 0), Target("rev", 2, 1, 5)):
        assert is_outdated(seen, {"name": "a"}, other)
    assert is_outdated(seen, {"name": "a", "patch": {"spec": {}}}, target)


def test_a_deployment_is_not_outdated_by_a_partition() -> None:
    kind = kind_named("deploymentTemplate")
    seen = observe_workload(kind, rendered("deploymentTemplate", Target("rev", 2)), [], "rev")
    assert not is_outdated(seen, {"name": "a"}, Target("rev", 2, 1))


def a_pod(name: str, revision: str, *, ready: bool = False, **metadata: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    labels = {SUBSET_REVISION_LABEL: revision}
    return {"metadata": {"name": name, "labels": labels, **metadata}, "status": {"conditions": conditions}}


def test_old_pods_above_the_partition_that_are_not_ready_are_stuck() -> None:
    kind = kind_named("statefulSetTemplate")
    seen = observe_workload(kind, rendered("statefulSetTemplate", Target("new", 5, 2)), [], "new")
    pods = [
        *(a_pod(f"web-a-{ordinal}", "old") for ordinal in range(4)),
        a_pod("web-a-4", "new"),
        a_pod("web-a-5", "old", ready=True),
        a_pod("web-a-6", "old", deletionTimestamp="2026-01-01T00:00:00Z"),
    ]
    assert stuck_pods(seen, pods, "new", 2) == ["web-a-2", "web-a-3"]
    by_hand = rendered("statefulSetTemplate", Target("new", 5, 2), updateStrategy={"type": "OnDelete"})
    assert stuck_pods(observe_workload(kind, by_hand, pods, "new"), pods, "new", 2) == []


def test_a_name_without_a_number_at_its_end_has_no_ordinal() -> None:
    assert [ordinal_of(name) for name in ("web-0", "web-12", "web-x1", "web-", "web-²")] == [0, 12, -1, -1, -1]


def test_alternatives_of_a_subset_are_combined_with_those_of_the_template() -> None:
    def term(value: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}

    own = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term("x"), term("y")]}}}}
    subset = {"name": "s", "nodeSelector": {"nodeSelectorTerms": [term("a"), term("b"), {}]}}
    terms = with_nodes(own, subset)["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    zones = [[each["values"][0] for each in one["matchExpressions"]] for one in terms]
    assert zones == [["x", "a"], ["x", "b"], ["y", "a"], ["y", "b"]]
