"""Patches within a plan: what the API server would make of them."""

from typing import Any

import pytest

from federation.api.federatedtype import default_type_configs, from_config
from federation.scheduling.whatif.pipelinerun import PipelineRun

TYPE = next(type_ for config in default_type_configs() if (type_ := from_config(config)).resource.kind == "Deployment")


@pytest.mark.parametrize(
    ("generation", "patch", "expected"),
    [
        (None, {"spec": {"placements": [1]}}, 1),
        (3, {"spec": {"placements": [1]}}, 4),
        (3, {"spec": {"placements": []}}, 3),
        (3, {"metadata": {"annotations": {"a": "b"}}}, 3),
    ],
)
def test_a_change_of_the_spec_has_a_new_generation(
    generation: int | None, patch: dict[str, Any], expected: int
) -> None:
    metadata = {"name": "web"} | ({} if generation is None else {"generation": generation})
    run = PipelineRun({"metadata": metadata, "spec": {"placements": []}}, TYPE, False)
    assert run.apply(patch)
    assert run.federated["metadata"]["generation"] == expected
    assert not run.apply(None)
