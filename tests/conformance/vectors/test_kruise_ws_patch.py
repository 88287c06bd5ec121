"""The patch of a subset changes pods as in the vectors."""

from typing import Any

import pytest
from tests.support.vectors import each_case, filled, load

from federation.apimachinery.errors import ApiError
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.planning.workloadspread.injection import with_patch


@each_case(load("kruise-ws-patch"))
def test_pods_are_patched_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], pod={}, patch={})
    subset = {"name": "a", "patch": given["patch"]}
    if case["expected"].get("error"):
        with pytest.raises(ApiError):
            with_patch(given["pod"], subset, patch_pod)
        return
    patched = with_patch(given["pod"], subset, patch_pod)
    expected = filled(case["expected"], pod=patched)
    assert patched == expected["pod"]
    if (wanted := expected.get("envNames as set")) is not None:
        found = {item["name"] for found in patched["spec"]["containers"] for item in found.get("env") or ()}
        assert found == set(wanted)
