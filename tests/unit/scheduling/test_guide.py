"""docs/scheduling.md has valid manifests and annotations, and lists every plugin."""

import re
from dataclasses import fields
from importlib.metadata import entry_points
from typing import Any

import yaml
from tests.support.sources import ROOT
from tools.definitions import KINDS

from federation.api import names
from federation.scheduling.annotationoverrides import FORMS, ignored_annotations, overrides_from_annotations
from federation.scheduling.engine import Engine
from federation.scheduling.framework.profile import BINPACK_PLUGIN, DEFAULT_PROFILE, apply_profile
from federation.scheduling.framework.registry import GROUP, load_plugins
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.policywarnings import policy_warnings

GUIDE = (ROOT / "docs" / "scheduling.md").read_text()
OWN = {entry.name for entry in entry_points(group=GROUP) if entry.module.startswith("federation_plugins.")}
"""The built-in plugins, without other installed ones."""


def manifests() -> list[dict[str, Any]]:
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    return [manifest for block in blocks for manifest in yaml.safe_load_all(block)]


def rows() -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in GUIDE.splitlines() if line[:1] == "|"]


def test_its_manifests_are_valid_and_its_profile_works() -> None:
    models: dict[str, Any] = {kind.DEFINITION.resource.kind: kind for kind in KINDS}
    found = manifests()
    assert {manifest["kind"] for manifest in found} == {"PropagationPolicy", "SchedulingProfile"}
    for manifest in found:
        models[manifest["kind"]].model_validate(manifest)
        if manifest["kind"] == "PropagationPolicy":
            compile_policy(manifest)
            assert not policy_warnings(manifest)
    [described] = (manifest for manifest in found if manifest["kind"] == "SchedulingProfile")
    profile = apply_profile(DEFAULT_PROFILE, described)
    assert Engine(load_plugins()).framework(profile) is not None


def test_its_table_lists_every_plugin_and_the_enabled_ones() -> None:
    listed = {name: row[2] for row in rows() if len(row) == 3 for name in row[0].split(", ") if name in OWN}
    assert set(listed) == OWN
    points = (getattr(DEFAULT_PROFILE, field.name) for field in fields(DEFAULT_PROFILE) if field.name != "name")
    running = {ref.name for point in points if isinstance(point, tuple) for ref in point if hasattr(ref, "name")}
    assert {name for name, runs in listed.items() if runs.startswith("yes")} == running | {BINPACK_PLUGIN}


def test_its_annotations_are_valid() -> None:
    given = {
        row[0].strip("`"): re.findall(r"`([^`]+)`", row[1])
        for row in rows()
        if row[0].startswith(("`kubeadmiral", "`federation."))
    }
    assert set(FORMS) <= set(given)
    for key in FORMS.keys() - {names.AFFINITY}:
        for value in given[key]:
            assert overrides_from_annotations({key: value}), (key, value)


def test_the_form_proposed_for_an_invalid_annotation_is_valid() -> None:
    for key, form in FORMS.items():
        value = {names.MAX_CLUSTERS: "0"}.get(key, form.split(" or ")[0])
        assert ignored_annotations({key: value}) == {}
        assert overrides_from_annotations({key: value})
