"""Vectors `override_*`: overriders, whole policies and the helpers around them."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.vectors import each_case, filled, load

from federation.api import names
from federation.planning.federatedobject.placements import overrides_of
from federation.planning.overrides import policies
from federation.planning.overrides.containers import compute_command_patches, compute_env_patches
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.image import compute_image_patches
from federation.planning.overrides.metadata import compute_metadata_patches
from federation.planning.overrides.patches import patches_by_cluster
from federation.planning.overrides.targets import compile_target


def _expect(expected: dict[str, Any], compute: Callable[[], list[dict[str, Any]]]) -> None:
    if expected.get("error"):
        with pytest.raises(OverrideError):
            compute()
    else:
        assert compute() == (expected.get("patches") or [])


@each_case(load("override_image"))
def test_image_overriders(case: dict[str, Any]) -> None:
    given = filled(case["input"], template={}, overriders=[])
    _expect(case["expected"], lambda: compute_image_patches(given["template"], given["overriders"]))


@each_case(load("override_command_args"))
def test_command_and_args_overriders(case: dict[str, Any]) -> None:
    given = filled(case["input"], template={}, overriders=[])
    _expect(case["expected"], lambda: compute_command_patches(given["template"], given["overriders"], given["target"]))


@each_case(load("override_envs"))
def test_env_overriders(case: dict[str, Any]) -> None:
    given = filled(case["input"], template={}, overriders=[])
    _expect(case["expected"], lambda: compute_env_patches(given["template"], given["overriders"]))


@each_case(load("override_annotations_labels"))
def test_annotation_and_label_overriders(case: dict[str, Any]) -> None:
    given = filled(case["input"], template={}, overriders=[])
    _expect(case["expected"], lambda: compute_metadata_patches(given["template"], given["overriders"], given["target"]))


@each_case(load("override_parse_policy"))
def test_whole_policies(case: dict[str, Any]) -> None:
    given = filled(case["input"], overrideRules=[], clusters=[], template={})
    expected = filled(case["expected"], error=False, overrides={})
    policy = policies.compile_policy({"metadata": {"name": "p"}, "spec": {"overrideRules": given["overrideRules"]}})
    clusters = [
        policies.Cluster(cluster["metadata"]["name"], cluster["metadata"].get("labels") or {})
        for cluster in given["clusters"]
    ]
    if expected.get("error"):
        with pytest.raises(OverrideError):
            policies.compute_overrides(given["template"], [policy], clusters)
    else:
        assert policies.compute_overrides(given["template"], [policy], clusters) == expected["overrides"]


def _look_up(given: dict[str, Any]) -> list[str]:
    obj = given["object"]
    existing = {
        (policy.get("namespace") or "", policy["name"])
        for policy in [*given["overridePolicies"], *given["clusterOverridePolicies"]]
    }
    found = []
    for reference in policies.labelled_policies(obj.get("labels"), obj.get("namespace") or ""):
        if reference is not None:
            if (reference.namespace, reference.name) not in existing:
                raise OverrideError(f"{reference.display} does not exist")
            found.append(f"{reference.namespace}/{reference.name}".lstrip("/"))
    return found


@each_case(load("override_util"))
def test_helpers(case: dict[str, Any]) -> None:
    given = filled(case["input"], object={}, overridePolicies=[], clusterOverridePolicies=[], src={}, dst={}, list=[])
    expected = filled(case["expected"], error=False, matched=False, policyKeys=[], result={})
    # We look again when a policy changes; KubeAdmiral says so by a result of its function.
    assert expected.get("needsRecheckOnError") in (None, False, expected["error"])
    match given["op"]:
        case "isClusterMatched":
            metadata = given["cluster"]["metadata"]
            target = compile_target(given.get("targetClusters"))
            if expected.get("error"):
                with pytest.raises(OverrideError):
                    target.matches(metadata["name"], metadata.get("labels"))
            else:
                assert target.matches(metadata["name"], metadata.get("labels")) is expected["matched"]
        case "lookForMatchedPolicies":
            if expected["error"]:
                with pytest.raises(OverrideError):
                    _look_up(given)
            else:
                assert _look_up(given) == expected["policyKeys"]
        case "mergeOverrides":
            overrides = [
                {
                    "controller": name,
                    "clusters": [
                        {"cluster": cluster, "patches": patches or []} for cluster, patches in given[name].items()
                    ],
                }
                for name in ("src", "dst")
            ]
            assert patches_by_cluster(overrides, [["dst"], ["src"]]) == expected["result"]
        case "listToMap":
            overrides = [{"controller": "c", "clusters": given["list"]}]
            assert overrides_of({"spec": {"overrides": overrides}}, "c") == expected["result"]
        case other:
            raise AssertionError(other)


def test_the_labels_are_those_of_kubeadmiral() -> None:
    assert names.OVERRIDE_POLICY_LABEL == "kubeadmiral.io/override-policy-name"
    assert names.CLUSTER_OVERRIDE_POLICY_LABEL == "kubeadmiral.io/cluster-override-policy-name"
