"""Patches of pods: unknown fields are removed, and patched templates are validated."""

import copy
from typing import Any

from federation.apiserver.semantics.validation.podpatches import patch_pod, unknown_fields, validate_patched_pod

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
