"""The patch of client-side `kubectl apply`: removed fields are deleted, foreign fields stay."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery import wellknown
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import DEPLOYMENTS
from federation.apiserver.semantics.patch.strategic import strategic_merge_patch
from federation.apiserver.semantics.schema import builtin
from federation.client.client import PatchType
from federation.plans.threeway import last_applied, three_way

SCHEMA = builtin.builtin_schema("apps", "v1", "Deployment")
WORDS = st.sampled_from(("a", "b", "c"))


def a_deployment(containers: list[dict[str, Any]], labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": labels},
        "spec": {"template": {"spec": {"containers": containers}}, **spec},
    }


@st.composite
def deployments(draw: st.DrawFn) -> dict[str, Any]:
    def named(values: dict[str, str]) -> list[dict[str, Any]]:
        return [{"name": name, "value": value} for name, value in values.items()]

    containers = [
        {"name": name, "image": draw(WORDS), "env": named(draw(st.dictionaries(WORDS, WORDS)))}
        for name in draw(st.lists(WORDS, unique=True, min_size=1))
    ]
    return a_deployment(containers, draw(st.dictionaries(WORDS, WORDS)))


def applied(live: dict[str, Any], last: dict[str, Any], manifest: dict[str, Any]) -> Any:
    patch_type, patch = three_way(DEPLOYMENTS, last, manifest)
    assert patch_type is PatchType.STRATEGIC
    result = strategic_merge_patch(SCHEMA, live, patch)
    assert last_applied(result) == {**manifest, "metadata": {**manifest["metadata"], "annotations": {}}}
    del result["metadata"]["annotations"]
    return result


@given(deployments(), deployments())
def test_without_foreign_fields_the_result_is_the_manifest(last: dict[str, Any], manifest: dict[str, Any]) -> None:
    assert applied(last, last, manifest) == manifest


def test_foreign_fields_stay_and_removed_fields_are_deleted() -> None:
    last = a_deployment([{"name": "web", "image": "x:1"}, {"name": "old", "image": "y"}], {"mine": "1", "gone": "1"})
    live = json.loads(json.dumps(last))
    live["spec"]["replicas"] = 5
    live["metadata"]["labels"]["theirs"] = "1"
    live["spec"]["template"]["spec"]["containers"].append({"name": "injected", "image": "proxy"})
    result = applied(live, last, a_deployment([{"name": "web", "image": "x:2"}], {"mine": "2"}))
    assert result["metadata"]["labels"] == {"mine": "2", "theirs": "1"}
    assert result["spec"]["replicas"] == 5
    containers = {c["name"]: c["image"] for c in result["spec"]["template"]["spec"]["containers"]}
    assert containers == {"web": "x:2", "injected": "proxy"}


def test_a_changed_strategy_removes_the_defaults_of_the_previous_one() -> None:
    last = a_deployment([], {})
    live = a_deployment([], {}, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})
    result = applied(live, last, a_deployment([], {}, strategy={"type": "Recreate"}))
    assert result["spec"]["strategy"] == {"type": "Recreate"}


def test_custom_resources_get_a_merge_patch() -> None:
    metadata: dict[str, Any] = {"name": "p"}
    last = {"metadata": metadata, "spec": {"maxClusters": 2, "placement": [{"cluster": "a"}]}}
    manifest = {"metadata": metadata, "spec": {"placement": [{"cluster": "b"}]}}
    patch_type, patch = three_way(PROPAGATION_POLICIES, last, manifest)
    assert patch_type is PatchType.MERGE
    live = {**last, "spec": {**last["spec"], "schedulingMode": "Divide"}}
    result = apply_merge_patch(live, patch)
    assert result["spec"] == {"schedulingMode": "Divide", "placement": [{"cluster": "b"}]}


def test_a_missing_or_unreadable_annotation_gives_no_last_applied_manifest() -> None:
    assert last_applied({"metadata": {}}) is None
    for text in ("{", "3"):
        assert last_applied({"metadata": {"annotations": {wellknown.LAST_APPLIED_CONFIGURATION: text}}}) is None
