"""WorkloadSpreads are converted between their versions as in the vectors."""

from typing import Any

from tests.support.vectorfacts import fact
from tests.support.vectors import each_case, filled, load

from federation.planning.workloadspread.hub import to_hub, to_v1alpha1

CASES = [case for case in load("kruise-api-conversion") if case["input"].get("kind") == "WorkloadSpread"]


@each_case(CASES)
def test_versions_are_converted_as_in_the_vectors(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"], direction="toV1beta1"), filled(case["expected"])
    assert given["kind"] == "WorkloadSpread"
    status = {**(given.get("status") or {})}
    if (condition := given.get("condition")) is not None:
        status = {"subsetStatuses": [{"name": "a", "conditions": [condition]}]}
    subset, object_ = given.get("subset"), given.get("object") or {}
    spread = {**object_, **({"spec": {"subsets": [subset]}} if subset is not None else {}), "status": status}
    converted = to_v1alpha1(spread) if given["direction"] == "toV1alpha1" else to_hub(spread)
    if given["direction"] == "roundTrip":
        converted = to_v1alpha1(converted)
    document = {
        "object": converted,
        "status": converted.get("status"),
        "subset": ((converted.get("spec") or {}).get("subsets") or [{}])[0],
        "condition": fact(converted, "status.subsetStatuses[0].conditions[0]"),
    }
    for key, wanted in expected.items():
        assert document[key] == wanted, key
