"""Attack: a tenant suspends what is not his, or writes a suspension that cannot be read."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.tenants import MERGE, OURS, tenants

from federation.apimachinery.resources import Object
from federation.planning.freezes.suspension import compile_suspension


def a_suspension(kind: str, **spec: Any) -> Object:
    body = {"owner": "ops", "reason": "a copy", **spec}
    return {"apiVersion": OURS.removeprefix("/apis/"), "kind": kind, "metadata": {"name": "copy"}, "spec": body}


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
OWN = f"{OURS}/namespaces/default/deliverysuspensions"


@pytest.mark.parametrize(
    ("objects", "field"),
    [
        (None, "spec.objects"),
        ([DEPLOYMENT, {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}], "spec.objects[1]"),
        ([{"apiVersion": "v1", "kind": "ResourceQuota"}], "spec.objects[0]"),
        ([{"apiVersion": "example.com/v1", "kind": "Unknown"}], "spec.objects[0]"),
    ],
)
async def test_a_tenant_holds_only_what_he_may_update(tmp_path: Path, objects: Any, field: str) -> None:
    async with tenants(tmp_path) as host:
        editor = await host.client("editor")
        refused = await editor.post(OWN, json=a_suspension("DeliverySuspension", objects=objects))
        assert refused.status_code == 403
        assert [each["field"] for each in refused.json()["details"]["causes"]] == [field]
        assert (
            await editor.post(OWN, json=a_suspension("DeliverySuspension", objects=[DEPLOYMENT]))
        ).status_code == 201
        widened = {"spec": {"objects": objects}}
        assert (await editor.patch(f"{OWN}/copy", json=widened, headers=MERGE)).status_code == 403
        root = await host.root()
        assert (await root.patch(f"{OWN}/copy", json=widened, headers=MERGE)).status_code == 200


async def test_a_tenant_who_selects_kinds_without_a_namespace_holds_nothing_and_is_warned(tmp_path: Path) -> None:
    """Cluster roles, definitions and the namespace itself, on which `edit` has no rights."""
    kinds = (
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"},
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
        {"apiVersion": "v1", "kind": "Namespace", "name": "default"},
    )
    async with tenants(tmp_path) as host:
        editor = await host.client("editor")
        body = a_suspension("DeliverySuspension", objects=[DEPLOYMENT, *kinds])
        created = await editor.post(OWN, json=body)
        patched = await editor.patch(f"{OWN}/copy", json={"spec": {"objects": list(kinds)}}, headers=MERGE)
        for answer, first in ((created, 1), (patched, 0)):
            assert answer.status_code < 300
            warnings = answer.headers.get_list("warning", split_commas=False)
            for index, each in enumerate(kinds, first):
                text = f"spec.objects[{index}]: {each['kind']} is a kind without a namespace"
                assert [warning for warning in warnings if text in warning], warnings
    for objects in (list(kinds), None):
        stored = a_suspension("DeliverySuspension", objects=objects)
        compiled = compile_suspension({**stored, "metadata": {"name": "copy", "namespace": "default"}})
        for each in kinds:
            obj = {**each, "metadata": {"name": "default"}}
            assert not compiled.concerns(obj, "", "east", {}), each
        assert objects or compiled.concerns(DEPLOYMENT, "default", "east", {})


async def test_a_tenant_suspends_his_own_namespace_only(tmp_path: Path) -> None:
    async with tenants(tmp_path) as host:
        editor = await host.client("editor")
        own = a_suspension("DeliverySuspension", objects=[DEPLOYMENT])
        assert (await editor.post(OWN, json=own)).status_code == 201
        assert (await editor.post(f"{OURS}/namespaces/kube-system/deliverysuspensions", json=own)).status_code == 403
        every = a_suspension("ClusterDeliverySuspension")
        assert (await editor.post(f"{OURS}/clusterdeliverysuspensions", json=every)).status_code == 403


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"until": "tomorrow"}, "spec.until"),
        ({"owner": ""}, "spec.owner"),
        ({"clusters": []}, "spec.clusters"),
        ({"objects": [{"apiVersion": "v1", "kind": "Secret"}] * 257}, "spec.objects"),
        ({"clusters": ["a" * 254]}, "spec.clusters[0]"),
        ({"namespaces": ["other"]}, "namespaces"),
    ],
)
async def test_a_suspension_that_cannot_be_read_is_refused(tmp_path: Path, spec: dict[str, Any], field: str) -> None:
    async with tenants(tmp_path) as host:
        root = await host.root()
        body = a_suspension("DeliverySuspension", **spec)
        answer = await root.post(f"{OURS}/namespaces/default/deliverysuspensions?fieldValidation=Strict", json=body)
    assert answer.status_code in (400, 422), answer.text
    assert field in answer.text


SELECTED = (
    ("v1", "Namespace"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("core.kubeadmiral.io/v1alpha1", "FederatedCluster"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("v1", "ResourceQuota"),
    ("apps/v1", "Deployment"),
    ("example.com/v1", "Unknown"),
)


async def test_a_dry_run_is_answered_as_the_write_is(tmp_path: Path) -> None:
    """Whatever kind a tenant selects: code, message and warnings are the same, and a dry run stores nothing."""
    async with tenants(tmp_path) as host:
        editor = await host.client("editor")
        for number, (api_version, kind) in enumerate(SELECTED):
            selector = [{"apiVersion": api_version, "kind": kind}]
            for own, spec in (
                ("PropagationPolicy", {"schedulingMode": "Duplicate", "resourceSelectors": selector}),
                ("OverridePolicy", {"resourceSelectors": selector}),
                ("DeliverySuspension", {"owner": "ops", "reason": "a copy", "objects": selector}),
            ):
                plural = {"PropagationPolicy": "propagationpolicies", "OverridePolicy": "overridepolicies"}
                url = f"{OURS}/namespaces/default/{plural.get(own, 'deliverysuspensions')}"
                body = {**a_suspension(own), "metadata": {"name": f"p{number}"}, "spec": spec}
                answers = [await editor.post(f"{url}{query}", json=body) for query in ("?dryRun=All", "")]
                seen = [(each.status_code, each.json().get("message"), each.headers.get("Warning")) for each in answers]
                assert seen[0] == seen[1], (own, kind)
                may_update = kind not in ("Role", "ResourceQuota", "Unknown")
                assert (seen[0][0] == 201) is may_update, (own, kind, seen)
                assert (await editor.get(f"{url}/p{number}")).status_code == (200 if may_update else 404)


async def test_an_unknown_field_of_any_own_kind_is_refused_or_named(tmp_path: Path) -> None:
    async with tenants(tmp_path) as host:
        root = await host.root()
        checked = 0
        for resource in (await root.get(OURS)).json()["resources"]:
            if "/" in resource["name"] or "create" not in resource["verbs"]:
                continue
            where = "/namespaces/default" if resource["namespaced"] else ""
            url, kind = f"{OURS}{where}/{resource['name']}", resource["kind"]
            body: Object = {**a_suspension(kind), "spec": {"nonsense": 1}, "nonsense": 1}
            refused = await root.post(f"{url}?dryRun=All&fieldValidation=Strict", json=body)
            assert refused.status_code == 400, (kind, refused.text)
            assert 'unknown field "nonsense"' in refused.json()["message"], kind
            found = refused.json()["message"]
            assert 'unknown field "spec.nonsense"' in found or 'unknown field "spec"' in found, (kind, found)
            checked += 1
        assert checked > 25
        named = await root.post(OWN, json=a_suspension("DeliverySuspension", objects=[DEPLOYMENT], namespaces=["x"]))
        assert named.status_code == 201
        assert named.headers["Warning"] == '299 - "unknown field \\"spec.namespaces\\""'
        assert "namespaces" not in named.json()["spec"]
