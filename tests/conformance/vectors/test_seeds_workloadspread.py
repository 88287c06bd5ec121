"""The manifests of the articles on WorkloadSpread are valid and distribute pods as the articles say."""

import re
from collections.abc import Mapping
from typing import Any

from tests.support.spreads import CLONE_SET, REPLICA_SET, RULES, SpreadWorkload, a_pod, a_spread
from tests.support.vectors import each_case, filled, load

from federation.apiserver.semantics.validation.podpatches import patch_pod, unknown_fields
from federation.features.workloadspread.rules.adoption import group_pods
from federation.features.workloadspread.rules.hub import to_hub
from federation.features.workloadspread.rules.injection import inject_subset
from federation.features.workloadspread.rules.specvalidation import patch_warnings, validate_spread
from federation.features.workloadspread.rules.subsets import find_subset, subsets_of

UNITED = re.compile("UnitedDeployment|API sketch|multi-cluster|HPA on")
CASES = [
    *load("seeds-000-workloadspread"),
    *(case for case in load("seeds-001-workloadspread-uniteddeployment") if not UNITED.search(case["name"])),
]
POD = {
    "metadata": {"name": "web-0"},
    "spec": {"containers": [{"name": "main", "image": "web:1", "resources": {"limits": {"cpu": "1"}}}]},
}


def _spread(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the WorkloadSpread of a whole manifest, a spec, or a subset."""
    if manifest.get("patch") is not None:
        manifest = {"subsets": [{"name": "a", **manifest}]}
    spec = manifest.get("spec") or manifest
    kind = (spec.get("targetRef") or {}).get("kind") or "CloneSet"
    parts = {"targetRef": spec["targetRef"]} if spec.get("targetRef") else {}
    spread = a_spread(spec.get("subsets") or (), kind, **parts, scheduleStrategy=spec.get("scheduleStrategy"))
    return spread | ({"status": manifest["status"]} if manifest.get("status") else {})


def _workload(spread: Mapping[str, Any], **options: Any) -> SpreadWorkload:
    is_deployment = spread["spec"]["targetRef"]["kind"] == "Deployment"
    owner, version = (REPLICA_SET, "v1") if is_deployment else (CLONE_SET, "")
    return SpreadWorkload(spread, owner=owner, version=version, **options)


def _scaled(spread: Mapping[str, Any], *replicas: int) -> SpreadWorkload:
    workload = _workload(spread)
    for number in replicas:
        workload.scale(number)
    return workload


def _check_counts(workload: SpreadWorkload, wanted: Mapping[str, int]) -> None:
    assert workload.counts() == {name: count for name, count in wanted.items() if count}


@each_case(CASES, is_whole=False)
def test_manifests_of_the_articles_are_judged_as_they_say(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"], manifest={}), filled(case["expected"])
    manifest = given["manifest"]
    spread = to_hub(manifest) if manifest.get("kind") else _spread(manifest)
    causes = validate_spread(spread, RULES) if manifest else []
    assert (not causes) == expected.get("valid", expected.get("error_field") is None)
    assert expected.get("error_field") in (None, *(cause["field"] for cause in causes))


@each_case(CASES, is_whole=False)
def test_pods_are_distributed_as_the_articles_say(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"], manifest={}), filled(case["expected"])
    spread = _spread(given["manifest"])
    for key, wanted in expected.items():
        if not isinstance(wanted, Mapping):
            continue
        if key == "distribution" and not all(number.isdecimal() for number in wanted):
            _check_counts(_scaled(spread, sum(wanted.values())), wanted)
        elif key == "scale_out" or key.startswith("distribution"):
            workload = _workload(spread)
            for number in sorted(map(int, wanted)):
                workload.scale(number)
                _check_counts(workload, wanted[str(number)])
        elif key.startswith("scale_in_from_"):
            start = int(key.removeprefix("scale_in_from_").partition("_")[0])
            for number, counts in wanted.items():
                _check_counts(_scaled(spread, start, int(number)), counts)


@each_case([case for case in CASES if case["expected"].get("deletion_cost")], is_whole=False)
def test_deletion_costs_are_those_of_the_articles(case: dict[str, Any]) -> None:
    expected = filled(case["expected"], deletion_cost={})
    spread = _spread(case["input"].get("manifest") or {})
    before = expected.get("before") or expected.get("distribution") or {}
    roomy = [{**subset, "maxReplicas": before.get(subset["name"])} for subset in subsets_of(spread)[:-1]]
    start = (
        spread if not before else {**spread, "spec": {**spread["spec"], "subsets": [*roomy, subsets_of(spread)[-1]]}}
    )
    workload = _scaled(start, sum(before.values()) or 150)
    earlier = {name: workload.costs(name) for name in expected["deletion_cost"]}
    workload.spread = {**workload.spread, "spec": spread["spec"]}
    workload.reconcile()
    for name, wanted in expected["deletion_cost"].items():
        if isinstance(wanted, Mapping):
            assert workload.costs(name) == {int(cost): count for cost, count in wanted.items()}
        else:
            assert set(workload.costs(name)) == {wanted}
    if expected.get("changed_pods") is not None:
        changed = sum((workload.costs(name) - earlier[name]).total() for name in earlier)
        assert changed == expected["changed_pods"]
    if expected.get("deletion_order"):
        workload.scale(0)
        order = [
            name
            for name, previous in zip(workload.deleted, [None, *workload.deleted], strict=False)
            if name != previous
        ]
        assert len(order) == len(expected["deletion_order"])
        assert all(str(name) in text for name, text in zip(order, expected["deletion_order"], strict=True))


@each_case([case for case in CASES if case["input"].get("manifest")], is_whole=False)
def test_pods_carry_what_the_articles_say(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"]), filled(case["expected"])
    spread = _spread(given["manifest"])
    wanted = {
        **{name: {"labels": labels} for name, labels in (expected.get("labels") or {}).items()},
        **(expected.get("podsIn") or {}),
    }
    if carried := expected.get("subset-a pods carry"):
        wanted["subset-a"] = {"labels": carried.get("label") or {}}
    if labels := expected.get("pod.metadata.labels contains"):
        wanted["a"] = {"labels": labels}
    for name, facts in wanted.items():
        subset = find_subset(spread, name)
        assert subset is not None
        pod = inject_subset(POD, "ws", subset, patch_pod)
        assert pod["metadata"]["labels"] == pod["metadata"]["labels"] | (facts.get("labels") or {})
        limits = facts.get("container main limits") or {}
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"} | limits
    if variables := expected.get("container main env contains"):
        pod = inject_subset(POD, "ws", subsets_of(spread)[0], patch_pod)
        found = {item["name"]: item.get("value") for item in pod["spec"]["containers"][0]["env"]}
        assert found == found | variables
    if expected.get("intended"):
        assert (
            inject_subset(POD, "ws", subsets_of(spread)[0], patch_pod)["spec"]["containers"]
            == POD["spec"]["containers"]
        )
        assert patch_warnings(spread, unknown_fields) == [
            'unknown field "spec.subsets[0].patch.spec.containers[0].resources.limit"'
        ]
    if expected.get("annotation"):
        for subset in subsets_of(spread):
            ids = ((subset.get("patch") or {}).get("metadata") or {}).get("annotations") or {}
            annotations = inject_subset(POD, "ws", subset, patch_pod)["metadata"]["annotations"]
            assert len(annotations) == 1 + len(ids)
            assert annotations == annotations | ids


@each_case([case for case in CASES if case["expected"].get("example")], is_whole=False)
def test_pods_go_to_the_next_subset_when_no_node_fits(case: dict[str, Any]) -> None:
    example = filled(case["expected"].get("example") or {}, replicas=0, result={}, then_scale_to_7={})
    spread = _spread(case["input"]["manifest"] or {})
    workload = _workload(spread)
    workload.fits = lambda _subset: workload.counts().get("subset-normal", 0) < (example.get("normal_fits") or 0)
    workload.scale(example["replicas"])
    if example["result"]:
        _check_counts(workload, example["result"])
    for key, wanted in example.items():
        if key.startswith("then_scale_to_") and wanted:
            workload.scale(int(key.removeprefix("then_scale_to_")))
            _check_counts(workload, wanted)


@each_case([case for case in CASES if "create #1" in case["expected"]], is_whole=False)
def test_the_ledger_counts_as_the_article_says(case: dict[str, Any]) -> None:
    manifest, expected = case["input"].get("manifest") or {}, filled(case["expected"])
    entry = (manifest.get("status") or {}).get("subsetStatuses") or []
    spread = _spread(manifest) | {"status": {"versionedSubsetStatuses": {"versionIgnored": entry}}}
    workload = SpreadWorkload(spread)

    def missing() -> dict[str, int]:
        found = workload.spread["status"]["versionedSubsetStatuses"]["versionIgnored"]
        return {status["name"]: status["missingReplicas"] for status in found}

    chosen = {}
    for number in (1, 2):
        step = expected.get(f"create #{number}") or {}
        chosen[workload.create(f"pod-{number}")] = f"pod-{number}"
        assert step.get("chosen") in (None, *chosen)
        assert missing() == step.get("missingReplicas", missing())
    if (step := expected.get("delete the subset-a pod")) is not None:
        # The controller has seen the pod meanwhile, so that its record is gone.
        for status in workload.spread["status"]["versionedSubsetStatuses"]["versionIgnored"]:
            status.pop("creatingPods", None)
        workload.delete(chosen["subset-a"])
        assert missing() == step["missingReplicas"]


@each_case([case for case in CASES if "existing 8 pods" in case["expected"]], is_whole=False)
def test_existing_pods_are_adopted_as_the_article_says(case: dict[str, Any]) -> None:
    spread = _spread(case["input"].get("manifest") or {})
    pods = [a_pod(f"old-{number}", node="node-1", phase="Running") for number in range(8)]
    grouping = group_pods(spread, pods, {"node-1": {"metadata": {"name": "node-1"}}}, 8, patch_pod)
    assert [adoption.subset for adoption in grouping.adoptions] == ["local"] * 8
    assert all(set(adoption.patch) == {"metadata"} for adoption in grouping.adoptions), "no restart"
