"""The patch of a subset changes pods as in the vectors."""

from typing import Any

import pytest
from tests.support.vectors import case_id, filled, load

from federation.apiserver.semantics.validation.podpatches import patch_pod


@pytest.mark.parametrize("case", load("kruise-ws-patch"), ids=case_id)
def test_pods_are_patched_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], pod={}, patch={})
    patched = patch_pod(given["pod"], given["patch"])
    expected = filled(case["expected"], pod=patched)
    assert patched == expected["pod"]
    if (wanted := expected.get("envNames as set")) is not None:
        found = {item["name"] for found in patched["spec"]["containers"] for item in found.get("env") or ()}
        assert found == set(wanted)
