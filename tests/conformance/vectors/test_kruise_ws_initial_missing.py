"""A version without pods starts with the free replicas of the vectors."""

from typing import Any

from tests.support.vectors import each_case, facts, load

from federation.features.workloadspread.rules.ledger import initial_entry


@each_case(load("kruise-ws-initial-missing"))
def test_an_empty_version_starts_with_the_free_replicas_of_the_vectors(case: dict[str, Any]) -> None:
    # The rule is the same for every kind of target.
    given = facts(case["input"], workloadReplicas=0, subsets=[], targetKind="")
    found = {
        status["name"]: status["missingReplicas"]
        for status in initial_entry(given["subsets"], given["workloadReplicas"])
    }
    assert found == (case["expected"].get("missingReplicas") or {})
