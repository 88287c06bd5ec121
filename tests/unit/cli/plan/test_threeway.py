"""The patch that `kubectl apply` would send: what left the manifest goes, what others set stays."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.api.resources import DEPLOYMENTS, PROPAGATION_POLICIES
from federation.cli.plan.threeway import last_applied, three_way
from federation.client.protocol import PatchType
from federation.registry.patch.mergepatch import merge_patch
from federation.registry.patch.strategic import strategic_merge_patch
from federation.registry.schema import builtin

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
def test_what_nobody_else_touched_becomes_the_manifest(last: dict[str, Any], manifest: dict[str, Any]) -> None:
    assert applied(last, last, manifest) == manifest


def test_what_others_set_stays_and_what_left_the_manifest_goes() -> None:
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


def test_another_strategy_takes_the_defaults_of_the_one_before_away() -> None:
    last = a_deployment([], {})
    live = a_deployment([], {}, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})
    result = applied(live, last, a_deployment([], {}, strategy={"type": "Recreate"}))
    assert result["spec"]["strategy"] == {"type": "Recreate"}


def test_custom_kinds_get_a_merge_patch() -> None:
    metadata: dict[str, Any] = {"name": "p"}
    last = {"metadata": metadata, "spec": {"maxClusters": 2, "placement": [{"cluster": "a"}]}}
    manifest = {"metadata": metadata, "spec": {"placement": [{"cluster": "b"}]}}
    patch_type, patch = three_way(PROPAGATION_POLICIES, last, manifest)
    assert patch_type is PatchType.MERGE
    live = {**last, "spec": {**last["spec"], "schedulingMode": "Divide"}}
    result = merge_patch(live, patch)
    assert result["spec"] == {"schedulingMode": "Divide", "placement": [{"cluster": "b"}]}


def test_what_kubectl_did_not_note_or_nobody_can_read_is_no_last_one() -> None:
    assert last_applied({"metadata": {}}) is None
    for text in ("{", "3"):
        assert last_applied({"metadata": {"annotations": {names.LAST_APPLIED_CONFIGURATION: text}}}) is None
