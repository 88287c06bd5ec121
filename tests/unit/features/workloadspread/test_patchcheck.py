"""Patches against workloads that are newer than the WorkloadSpread."""

from dataclasses import replace
from typing import Any

from tests.support.spreads import RULES, a_spread

from federation.features.workloadspread.rules.patchcheck import PatchCheck

INCOMPLETE = [{"name": "base", "patch": {"spec": {"containers": [{"name": "side", "env": []}]}}}]


def a_workload(*containers: str, generation: int = 1) -> dict[str, Any]:
    template = {"metadata": {}, "spec": {"containers": [{"name": name, "image": "web"} for name in containers]}}
    return {"kind": "CloneSet", "metadata": {"uid": "w", "generation": generation}, "spec": {"template": template}}


def test_the_problem_follows_the_workload() -> None:
    check, spread = PatchCheck(RULES), a_spread(INCOMPLETE)
    assert check.problem(spread, None) == ""
    problem = check.problem(spread, a_workload("main"))
    assert problem == "spec.subsets[0].patch.spec.containers[0].image: Required value"
    assert check.problem(spread, a_workload("main", "side", generation=2)) == ""


def test_a_result_is_kept_while_both_objects_stay_the_same() -> None:
    calls: list[str] = []

    def patched_pod(*given: Any) -> list[dict[str, str]]:
        calls.append("checked")
        return RULES.patched_pod(*given)

    check = PatchCheck(replace(RULES, patched_pod=patched_pod), kept_max=1)
    spread, other = a_spread(INCOMPLETE), a_spread(INCOMPLETE)
    other["metadata"] = {**other["metadata"], "uid": "other"}
    assert {check.problem(spread, a_workload("main")) for _ in range(3)} != {""}
    assert len(calls) == 1
    check.problem(other, a_workload("main"))
    check.problem(spread, a_workload("main"))
    assert len(calls) == 3, "the oldest result is forgotten"
