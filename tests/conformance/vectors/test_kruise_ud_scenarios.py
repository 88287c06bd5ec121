"""Sequences of changes to a UnitedDeployment give the subsets the replicas and partitions of the vectors.

They are played in a simulated member (`tests/support/unitedscenario.py`).
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.unitedscenario import play
from tests.support.vectors import each_case, facts, filled, load

from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.features.uniteddeployment.admission import RULES
from federation.features.uniteddeployment.rules.allocation import SubsetState, allocate
from federation.features.uniteddeployment.rules.strategy import strategy_of
from federation.features.uniteddeployment.rules.subsettemplate import Target, render_workload
from federation.features.uniteddeployment.rules.unitedvalidation import validate_united
from federation.features.uniteddeployment.rules.workloadkinds import kind_of


@pytest.mark.slow("plays each scenario in a simulated member")
@each_case(load("kruise-ud-scenarios"))
def test_a_sequence_of_changes_is_followed_like_in_the_reference(case: dict[str, Any]) -> None:
    given = facts(case["input"], initial={}, steps=[])
    asyncio.run(play(given["initial"], given["steps"], [dict(each or {}) for each in case["expected"] or ()]))


SEEDS = [case for case in load("seeds-001-workloadspread-uniteddeployment") if "UnitedDeployment" in str(case["input"])]
SEEDS = [case for case in SEEDS if (case["input"].get("manifest") or {}).get("kind") == "UnitedDeployment"]


@each_case(SEEDS, is_whole=False)  # much of what a seed expects is prose
def test_a_manifest_of_the_seed_is_divided_and_rendered(case: dict[str, Any]) -> None:
    manifest, expected = case["input"].get("manifest") or {}, case["expected"]
    clusters = {("clusters", "cluster-bj"), ("clusters", "cluster-sh")}
    fields = [cause["field"] for cause in validate_united(manifest, RULES, clusters=clusters)]
    if expected.get("error_field"):
        assert fields == [expected["error_field"]]
        return
    assert fields == []
    spec = manifest.get("spec") or {}
    allocation = filled(expected, allocation={})["allocation"]
    by_total = allocation if allocation and all(total.isdigit() for total in allocation) else {}
    for total, shares in by_total.items():
        assert allocate({**spec, "replicas": int(total)}, {}) == shares
    if allocation and not by_total:
        assert allocate(spec, {}) == allocation
    for step in expected.get("steps") or ():
        observed = {
            name: SubsetState(ready=state.get("readyReplicas") or 0, is_schedulable=not state.get("unschedulable"))
            for name, state in (step.get("observed") or {}).items()
        }
        assert allocate({**spec, "replicas": step.get("replicas") or 0}, observed) == (step.get("allocation") or {})
    if expected.get("unschedulable_seconds"):
        assert strategy_of(spec).unschedulable_s == expected["unschedulable_seconds"]
    _check_pods(manifest, expected)


def _check_pods(manifest: dict[str, Any], expected: Mapping[str, Any]) -> None:
    united = {**manifest, "metadata": {**manifest["metadata"], "namespace": "default", "uid": "uid"}}
    kind = kind_of(manifest["spec"].get("template") or {})
    for subset in (manifest["spec"].get("topology") or {}).get("subsets") or () if kind else ():
        assert kind is not None
        workload = render_workload(united, subset, kind, Target("rev", 1), patch_pod)
        assert workload["metadata"]["name"].startswith(f"{manifest['metadata']['name']}-{subset['name']}-")
        pod = workload["spec"]["template"]["spec"]
        wanted = (subset.get("nodeSelectorTerm") or {}).get("matchExpressions")
        if wanted:
            required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            assert [term["matchExpressions"] for term in required["nodeSelectorTerms"]] == [wanted]
        limits = (expected.get("container main limits") or {}).get(subset["name"])
        if limits:
            assert pod["containers"][0]["resources"]["limits"] == limits
        for name, value in (expected.get(f"{subset['name']} pods env") or {}).items():
            assert {"name": name, "value": value} in pod["containers"][0]["env"]
