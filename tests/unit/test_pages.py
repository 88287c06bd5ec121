"""Manifests that documentation pages print are valid."""

import re
from typing import Any

import pytest
import yaml
from tests.support.sources import ROOT

from federation.api.v1alpha1.overridepolicy import OverridePolicy
from federation.api.v1alpha1.propagationpolicy import PropagationPolicy

MODELS = {"PropagationPolicy": PropagationPolicy, "OverridePolicy": OverridePolicy}


def manifests() -> list[Any]:
    """Return every manifest of a policy in a page, with the page's name."""
    found = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for manifest in yaml.load_all(block.replace("{…}", "{}"), yaml.CSafeLoader):
                if manifest.get("apiVersion") == "core.kubeadmiral.io/v1alpha1" and manifest.get("kind") in MODELS:
                    name = f"{page.name}-{manifest['kind']}-{len(found)}"
                    found.append(pytest.param(manifest, id=name))
    return found


@pytest.mark.parametrize("manifest", manifests())
def test_the_policies_of_the_pages_are_valid(manifest: dict[str, Any]) -> None:
    MODELS[manifest["kind"]].model_validate(manifest)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(ValueError, match="placements"):
        PropagationPolicy.model_validate(
            {"metadata": {"name": "a"}, "spec": {"schedulingMode": "Divide", "placements": []}}
        )
