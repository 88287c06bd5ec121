"""The plugin guide does what it says: its code blocks run, in order, in one namespace."""

import re
import tomllib

import yaml
from tests.support.vectors import ROOT

from federation.api.v1alpha1.schedulingprofile import SchedulingProfile
from federation.scheduling.framework.registry import GROUP

GUIDE = (ROOT / "docs" / "plugins.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_code_of_the_guide_runs() -> None:
    namespace: dict[str, object] = {"__name__": "guide"}
    assert len(blocks("python")) == 4
    for block in blocks("python"):
        exec(compile(block, "docs/plugins.md", "exec"), namespace)  # the guide is ours


def test_the_manifests_of_the_guide_are_valid() -> None:
    (profile,) = blocks("yaml")
    SchedulingProfile.model_validate(yaml.safe_load(profile))
    (metadata,) = blocks("toml")
    assert GROUP in tomllib.loads(metadata)["project"]["entry-points"]


def test_the_files_that_the_guide_names_exist() -> None:
    for link in re.findall(r"\]\(\.\./([^)]+)\)", GUIDE):
        assert (ROOT / link).exists(), link
