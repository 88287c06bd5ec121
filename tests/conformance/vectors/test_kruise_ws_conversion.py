"""WorkloadSpreads are converted between their versions as in the vectors."""

from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.planning.workloadspread.hub import condition_to_hub, to_hub, to_v1alpha1

CASES = [case for case in load("kruise-api-conversion") if case["input"].get("kind") == "WorkloadSpread"]


@each_case(CASES)
def test_versions_are_converted_as_in_the_vectors(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"], direction="toV1beta1"), filled(case["expected"])
    if (condition := given.get("condition")) is not None:
        assert condition_to_hub(condition) == filled(expected, condition=condition_to_hub(condition))["condition"]
    if (subset := given.get("subset")) is not None:
        spread: dict[str, Any] = {"spec": {"subsets": [subset]}}
        converted = to_v1alpha1(spread) if given["direction"] == "toV1alpha1" else to_hub(spread)
        if given["direction"] == "roundTrip":
            converted = to_v1alpha1(converted)
        found = converted["spec"]["subsets"][0]
        assert found == filled(expected, subset=found)["subset"]
