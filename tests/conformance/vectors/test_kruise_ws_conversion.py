"""WorkloadSpreads of both versions are read as in the vectors.

The product reads both versions and writes nothing in v1alpha1: what a conversion to v1alpha1 must give is right if the
product reads it as the same WorkloadSpread.
"""

from typing import Any

from tests.support.vectorfacts import fact
from tests.support.vectors import each_case, filled, load

from federation.features.workloadspread.rules.hub import to_hub

CASES = [case for case in load("kruise-api-conversion") if case["input"].get("kind") == "WorkloadSpread"]


def _read(parts: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a WorkloadSpread as the product reads them."""
    status = {**(parts.get("status") or {})}
    if (condition := parts.get("condition")) is not None:
        status = {"subsetStatuses": [{"name": "a", "conditions": [condition]}]}
    subset, object_ = parts.get("subset"), parts.get("object") or {}
    converted = to_hub({**object_, **({"spec": {"subsets": [subset]}} if subset is not None else {}), "status": status})
    return {
        "object": converted,
        "status": converted.get("status"),
        "subset": ((converted.get("spec") or {}).get("subsets") or [{}])[0],
        "condition": fact(converted, "status.subsetStatuses[0].conditions[0]"),
    }


@each_case(CASES)
def test_versions_are_read_as_in_the_vectors(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"], direction="toV1beta1"), filled(case["expected"])
    assert given["kind"] == "WorkloadSpread"
    is_hub, document = given["direction"] == "toV1beta1", _read(given)
    for key, wanted in expected.items():
        assert document[key] == (wanted if is_hub else _read({key: wanted})[key]), key
