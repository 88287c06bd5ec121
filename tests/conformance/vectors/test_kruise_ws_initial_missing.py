"""A version without pods starts with the free replicas of the vectors."""

from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.planning.workloadspread.ledger import initial_entry


@each_case(load("kruise-ws-initial-missing"))
def test_an_empty_version_starts_with_the_free_replicas_of_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], workloadReplicas=0, subsets=[])
    found = {
        status["name"]: status["missingReplicas"]
        for status in initial_entry(given["subsets"], given["workloadReplicas"])
    }
    assert found == (case["expected"].get("missingReplicas") or {})
