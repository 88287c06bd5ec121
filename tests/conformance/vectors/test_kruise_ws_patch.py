"""The patch of a subset changes pods as in the vectors."""

from typing import Any

import pytest
from tests.support.vectorfacts import check_facts
from tests.support.vectors import NOTES, each_case, facts, load

from federation.apimachinery.errors import ApiError
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.features.workloadspread.rules.injection import with_patch


@each_case(load("kruise-ws-patch"))
def test_pods_are_patched_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], pod={}, patch={})
    subset = {"name": "a", "patch": given["patch"]}
    if case["expected"].get("error"):
        with pytest.raises(ApiError):
            with_patch(given["pod"], subset, patch_pod)
        return
    patched = with_patch(given["pod"], subset, patch_pod)
    expected = {key: value for key, value in case["expected"].items() if key not in NOTES | {"error"}}
    variables = (
        [item for container in patched["spec"]["containers"] for item in container.get("env") or ()]
        if "spec" in patched
        else []
    )
    check_facts({**patched, "pod": patched, "env": variables, "envNames": variables}, expected)
