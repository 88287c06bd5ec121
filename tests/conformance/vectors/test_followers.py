"""References that pods make, and dry runs, as KubeAdmiral's own tests have them."""

from collections.abc import Mapping
from typing import Any

from tests.support.vectors import each_case, facts, filled, load

from federation.planning.followers.leaderplan import is_dry_run
from federation.planning.followers.references import pod_references


@each_case(load("follower"))
def test_dry_runs_and_references_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], op="", annotations={}, statusClusters=[], pod={}, namespace="")
    expected = filled(case["expected"], skip=False, followers={})
    if given["op"] == "skipSync":
        assert _is_dry_run(given) == expected["skip"]
    else:
        # References have no namespace: followers are in that of their pod.
        assert _followers(given) == {kind: set(listed) for kind, listed in expected["followers"].items() if listed}


def _is_dry_run(given: Mapping[str, Any]) -> bool:
    clusters = [{"cluster": name} for name in given["statusClusters"]]
    return is_dry_run({"metadata": {"annotations": given["annotations"]}, "status": {"clusters": clusters}})


def _followers(given: Mapping[str, Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for reference in pod_references(given["pod"].get("spec")):
        found.setdefault(reference.kind, set()).add(reference.name)
    return found
