"""Patches of pods: unknown fields are removed, and patched templates are validated."""

import contextlib
import copy
from typing import Any

import pytest

from federation.apimachinery.errors import BadRequest, Invalid
from federation.apiserver.semantics.validation.podpatches import (
    patch_pod,
    unknown_fields,
    validate_lone_patch,
    validate_patched_pod,
)

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web"}]},
}
UNKNOWN = {"spec": {"containers": [{"name": "main", "resources": {"limit": {"cpu": "1"}}}], "hostname": "x"}}


def test_unknown_fields_are_removed_and_reported() -> None:
    pod, patch = copy.deepcopy((TEMPLATE, UNKNOWN))
    patched = patch_pod(pod, patch)
    assert patched["spec"] == {"containers": [{"name": "main", "image": "web", "resources": {}}], "hostname": "x"}
    assert (pod, patch) == (TEMPLATE, UNKNOWN), "nothing changes in place"
    assert unknown_fields(patch) == ["spec.containers[0].resources.limit"]


def test_directives_are_no_unknown_fields() -> None:
    patch = {"spec": {"volumes": [{"$patch": "delete", "name": "x"}], "$setElementOrder/volumes": [{"name": "y"}]}}
    assert unknown_fields(patch) == []


def test_a_patched_template_is_validated_with_defaults() -> None:
    assert validate_patched_pod(TEMPLATE, {"spec": {"hostNetwork": True}}, (), "patch") == []
    wrong = {"spec": {"restartPolicy": "Sometimes"}}
    assert [cause["field"] for cause in validate_patched_pod(TEMPLATE, wrong, (), "patch")] == [
        "patch.spec.restartPolicy"
    ]
    assert [cause["field"] for cause in validate_patched_pod(TEMPLATE, {"$patch": "x"}, (), "patch")] == ["patch"]


def test_volumes_of_claims_can_be_mounted() -> None:
    patch = {"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}}
    assert validate_patched_pod(TEMPLATE, patch, ["data"], "patch") == []
    assert len(validate_patched_pod(TEMPLATE, patch, ["other"], "patch")) == 1


VALID_TEMPLATES: tuple[dict[str, Any], ...] = (
    {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}},
    {
        "metadata": {},
        "spec": {
            "hostNetwork": True,
            "containers": [
                {"name": "main", "image": "web", "livenessProbe": {"httpGet": {"port": 80}}},
                {"name": "side", "image": "web", "resources": {"requests": {"cpu": "1"}}},
            ],
            "volumes": [{"name": "data", "emptyDir": {}}],
            "tolerations": [{"operator": "Exists"}],
        },
    },
)
PARTIAL: list[dict[str, Any]] = [
    {"spec": {"containers": [{"name": "main", "livenessProbe": {"periodSeconds": 5}}]}},
    {"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}},
    {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]}},
    {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}},
    {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 2}]}},
    {"metadata": {"labels": {"tier": "base"}, "annotations": {"a": "b"}}},
    {"spec": {"nodeSelector": {"pool": "spot"}, "priorityClassName": "high"}},
]
HOPELESS: list[tuple[dict[str, Any], str]] = [
    ({"spec": {"containers": "x"}}, "cannot unmarshal string"),
    ({"spec": {"containers": [{"name": "main", "image": 5}]}}, "cannot unmarshal number"),
    ({"spec": {"containers": [{"image": "web"}]}}, "merge key: name"),
    ({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "abc"}}}]}}, "quantities must match"),
    ({"spec": {"containers": [{"name": "main", "ports": [{"containerPort": 70000}]}]}}, "between 1 and 65535"),
    ({"spec": {"containers": [{"$patch": "replace"}]}}, "Required value"),
    ({"spec": None}, "Required value"),
    ({"metadata": {"labels": {"app": ["x"]}}}, "cannot unmarshal array"),
    ({"metadata": {"labels": {"a b": "c"}}}, "name part must consist"),
    ({"metadata": 5}, "cannot unmarshal number"),
    ({"spec": {"restartPolicy": "Sometimes"}}, "Unsupported value"),
    ({"spec": {"tolerations": [{"key": "a", "operator": "Near"}]}}, "Unsupported value"),
    ({"$patch": "foo"}, "unknown patch type"),
]


@pytest.mark.parametrize("patch", PARTIAL, ids=str)
def test_a_patch_that_some_workload_completes_is_valid_alone(patch: dict[str, Any]) -> None:
    assert validate_lone_patch(patch, "patch") == []


@pytest.mark.parametrize(("patch", "text"), HOPELESS, ids=str)
def test_a_patch_that_no_workload_can_have_is_refused_before_there_is_one(patch: dict[str, Any], text: str) -> None:
    (cause, *_) = validate_lone_patch(patch, "patch")
    assert text in cause["message"]
    assert cause["field"].startswith("patch")
    for template in VALID_TEMPLATES:
        assert validate_patched_pod(template, patch, (), "patch") != []


@pytest.mark.parametrize(
    "value", [[5], {"a": ["x"]}, [{"name": [1]}], [[1]], 5, {"$patch": ["x"]}, [{"$patch": 5}]], ids=str
)
@pytest.mark.parametrize(
    "path",
    ["metadata", "metadata.labels", "spec", "spec.containers", "spec.affinity", "spec.volumes", "spec.tolerations"],
)
def test_any_json_is_a_valid_or_an_invalid_patch_and_no_fault(path: str, value: Any) -> None:
    patch: Any = value
    for field in reversed(path.split(".")):
        patch = {field: patch}
    validate_patched_pod(VALID_TEMPLATES[0], patch, (), "patch")
    validate_lone_patch(patch, "patch")
    with contextlib.suppress(BadRequest, Invalid):
        patch_pod({"metadata": {"name": "web-1"}, **VALID_TEMPLATES[1]}, patch)
