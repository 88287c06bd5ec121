"""Attack: a namespace user steers objects in members, through policies, that the host does not let the user write."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.tenants import MERGE, OURS, Tenants, rule, tenants

from federation.apimachinery.resources import Object
from federation.apiserver.auth.bootstrappolicy import RBACOptions, default_objects
from federation.client.local import LocalClient
from federation.features.types.shippedtypes import ensure_types
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policies import Cluster, compile_policy, compute_overrides

QUOTA, ROLE_BINDING = ("v1", "ResourceQuota"), ("rbac.authorization.k8s.io/v1", "RoleBinding")
WIDGET, DEPLOYMENT, UNKNOWN = ("example.com/v1", "Widget"), ("apps/v1", "Deployment"), ("example.org/v1", "Gadget")
JSON_PATCH = {"content-type": "application/json-patch+json"}
METADATA = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PATHS = {"PropagationPolicy": "propagationpolicies", "OverridePolicy": "overridepolicies"}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        yield served


def a_policy(kind: str, *selected: tuple[str, str], **spec: Any) -> Object:
    selectors = [{"apiVersion": api_version, "kind": of_kind} for api_version, of_kind in selected]
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "mine"},
        "spec": {"resourceSelectors": selectors, **({"schedulingMode": "Duplicate"} if "Prop" in kind else {}), **spec},
    }


async def with_widgets(host: Tenants) -> None:
    """Serve a custom kind that no default role grants."""
    root = await host.root()
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    crd = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    answer = await root.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=crd)
    assert answer.status_code == 201, answer.text
    await host.until(lambda: host.parts.registry.kinds.served("example.com", "v1", "Widget") is not None)


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("selected", [QUOTA, ROLE_BINDING, WIDGET, UNKNOWN], ids=lambda selected: selected[1])
async def test_edit_selects_no_kinds_that_it_cannot_write(
    host: Tenants, kind: str, selected: tuple[str, str], query: str
) -> None:
    await with_widgets(host)
    editor, path = await host.client("editor"), f"{OURS}/namespaces/default/{PATHS[kind]}"
    answer = await editor.post(path + query, json=a_policy(kind, DEPLOYMENT, selected))
    assert answer.status_code == 403, answer.text
    assert answer.json()["details"]["causes"][0]["field"] == "spec.resourceSelectors[1]"
    if query:
        return
    assert (await editor.post(path, json=a_policy(kind, DEPLOYMENT))).status_code == 201
    patch = {"spec": a_policy(kind, selected)["spec"]}
    assert (await editor.patch(f"{path}/mine", json=patch, headers=MERGE)).status_code == 403
    applied = await editor.patch(
        f"{path}/mine?fieldManager=me&force=true",
        json=a_policy(kind, selected),
        headers={"content-type": "application/apply-patch+yaml"},
    )
    assert applied.status_code == 403, applied.text


@pytest.mark.parametrize("kind", PATHS)
async def test_a_policy_of_an_administrator_is_not_turned_against_what_it_selects(host: Tenants, kind: str) -> None:
    root, editor = await host.root(), await host.client("editor")
    path = f"{OURS}/namespaces/default/{PATHS[kind]}"
    assert (await root.post(path, json=a_policy(kind, QUOTA))).status_code == 201
    changes: Object = {
        "PropagationPolicy": {"placement": [{"cluster": "west"}]},
        "OverridePolicy": {"overrideRules": [{"overriders": {"jsonpatch": [{"path": "/spec/hard"}]}}]},
    }
    answer = await editor.patch(f"{path}/mine", json={"spec": changes[kind]}, headers=MERGE)
    assert answer.status_code == 403, answer.text
    labelled = {"metadata": {"labels": {"team": "a"}}}
    assert (await editor.patch(f"{path}/mine", json=labelled, headers=MERGE)).status_code == 200


@pytest.mark.parametrize("kind", PATHS)
async def test_writers_of_a_kind_select_it(host: Tenants, kind: str) -> None:
    await with_widgets(host)
    path = f"{OURS}/namespaces/default/{PATHS[kind]}"
    administrator = await host.client("administrator")
    assert (await administrator.post(path, json=a_policy(kind, ROLE_BINDING, DEPLOYMENT))).status_code == 201
    await host.grant("editor", rule("patch", "widgets", "example.com"))
    changed = {"spec": a_policy(kind, WIDGET)["spec"]}
    answer = await (await host.client("editor")).patch(f"{path}/mine", json=changed, headers=MERGE)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "operation",
    [
        {"imageComponent": "Tag", "operator": "addIfAbsent", "value": "x"},
        {"imageComponent": "Tag", "operator": "overwrite", "value": "x"},
    ],
    ids=lambda operation: operation["operator"],
)
@pytest.mark.parametrize("value", ["UGFzc3dvcmQ=", "registry/name:hidden"])
def test_an_image_path_shows_no_data_of_a_secret(operation: Object, value: str) -> None:
    """Events and conditions quote the error, and `view` reads Events."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"password": value}}
    overriders = {"image": [{"imagePath": "/data/password", "operations": [operation]}]}
    policy = compile_policy({"metadata": {"name": "p"}, "spec": {"overrideRules": [{"overriders": overriders}]}})
    try:
        compute_overrides(secret, [policy], [Cluster("east", {})])
    except OverrideError as error:
        assert value not in str(error)  # noqa: PT017  # only a failure has a message
        assert "hidden" not in str(error)  # noqa: PT017


_NAMED = [f"cluster-{index:03}{'x' * 200}" for index in range(400)]
_LARGE = {
    "OverridePolicy": {
        "overrideRules": [
            {"overriders": {"labels": [{"value": {"a": "b"}}]}},
            {"overriders": {"jsonpatch": [{"path": f"/x{index}", "value": index} for index in range(3000)]}},
        ]
    },
    "PropagationPolicy": {"rollout": {"waves": [{"name": "first", "clusters": _NAMED}]}},
}


@pytest.mark.parametrize(
    ("kind", "field"),
    [("OverridePolicy", "spec.overrideRules[1].overriders.jsonpatch"), ("PropagationPolicy", "spec.rollout")],
    ids=PATHS,
)
async def test_what_is_copied_into_each_object_has_a_limit(host: Tenants, kind: str, field: str) -> None:
    administrator = await host.client("administrator")
    path = f"{OURS}/namespaces/default/{PATHS[kind]}"
    answer = await administrator.post(path, json=a_policy(kind, DEPLOYMENT, **_LARGE[kind]))
    assert answer.status_code == 422, answer.text
    (cause,) = answer.json()["details"]["causes"]
    assert cause["field"] == field
    assert "gets a copy, and the limit is 65,536; " in cause["message"]


def test_edit_writes_no_endpoints() -> None:
    """Endpoints are delivered to members, where they send the traffic of other namespaces anywhere (CVE-2021-25740)."""
    roles = {obj["metadata"]["name"]: obj for plural, obj in default_objects(RBACOptions()) if plural == "clusterroles"}
    for name in ("view", "edit", "admin"):
        for entry in roles[f"system:aggregate-to-{name}"]["rules"]:
            if {"endpoints", "endpointslices"} & set(entry.get("resources") or ()):
                assert set(entry["verbs"]) == {"get", "list", "watch"}


async def test_warnings_name_what_does_not_exist_and_no_policy_that_the_author_may_not_read(host: Tenants) -> None:
    root, editor = await host.root(), await host.client("editor")
    await ensure_types(LocalClient(host.parts.registry))
    everywhere = {**a_policy("ClusterPropagationPolicy", DEPLOYMENT), "metadata": {"name": "hidden-from-tenants"}}
    assert (await root.post(f"{OURS}/clusterpropagationpolicies", json=everywhere)).status_code == 201
    path = f"{OURS}/namespaces/default/propagationpolicies"
    policy = a_policy("PropagationPolicy", DEPLOYMENT, ("batch/v1", "Deployment"), placement=[{"cluster": "nowhere"}])
    warnings = {}
    for name, client in (("editor", editor), ("root", root)):
        answer = await client.post(f"{path}?dryRun=All", json=policy)
        if name == "editor":  # it may not update a kind that nobody knows
            assert answer.status_code == 403
            policy["spec"]["resourceSelectors"].pop()
            answer = await client.post(f"{path}?dryRun=All", json=policy)
        assert answer.status_code == 201, answer.text
        warnings[name] = " ".join(answer.headers.get_list("warning"))
        assert "spec.placement[0].cluster: there is no FederatedCluster 'nowhere'" in warnings[name]
    assert "hidden-from-tenants" not in warnings["editor"]
    assert 'ClusterPropagationPolicy \\"hidden-from-tenants\\" may select the same objects' in warnings["root"]
    assert (await editor.post(path, json=policy)).status_code == 201
    second = {**policy, "metadata": {"name": "other"}}
    told = " ".join((await editor.post(path, json=second)).headers.get_list("warning"))
    assert 'PropagationPolicy \\"mine\\" may select the same objects of kind Deployment; that one applies' in told
    unchanged = await editor.patch(f"{path}/other", json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
    assert "warning" not in unchanged.headers


async def test_the_counts_of_a_policy_are_not_for_tenants_and_are_validated(host: Tenants) -> None:
    """The control plane counts objects; a tenant cannot pretend that a policy is unused, nor store nonsense in it."""
    editor, root = await host.client("editor"), await host.root()
    for kind, path in PATHS.items():
        url = f"{OURS}/namespaces/default/{path}"
        pretended = {**a_policy(kind), "status": {"refCount": 7}}
        created = await editor.post(url, json=pretended)
        assert created.status_code == 201, created.text
        assert "status" not in created.json()
        for client, status, code in (
            (editor, {"refCount": 0}, 403),
            (root, {"refCount": -1}, 422),
            (root, {"refCount": "many"}, 422),
            (root, {"typedRefCount": [{"count": 1}]}, 422),
            (root, {"typedRefCount": [{"resource": "pods", "count": -1}]}, 422),
            (root, {"refCount": 1, "typedRefCount": [{"group": "", "resource": "pods", "count": 1}]}, 200),
        ):
            answer = await client.patch(f"{url}/mine/status", json={"status": status}, headers=MERGE)
            assert answer.status_code == code, (status, answer.text)
            assert "warning" not in answer.headers


VALUE = "Y2FuYXJ5LXZhbHVl"


def carrying(name: str, path: str = "/data/a") -> Object:
    patch = {"operator": "add", "path": path, "value": VALUE}
    spec = {"overrideRules": [{"overriders": {"jsonpatch": [patch]}}]}
    return {**a_policy("OverridePolicy"), "metadata": {"name": name}, "spec": spec}


async def test_a_writer_of_policies_without_rights_on_secrets_gets_no_value_out(host: Tenants) -> None:
    root, url = await host.root(), f"{OURS}/namespaces/default/overridepolicies"
    for body in (carrying("secret"), carrying("plain", "/spec/a")):
        assert (await root.post(url, json=body)).status_code == 201
    await host.grant("writer", rule("*", "overridepolicies,overridepolicies/status"))
    writer = await host.client("writer")
    listed = await writer.get(url)
    assert [item["metadata"]["name"] for item in listed.json()["items"]] == ["plain"]
    assert "one is left out if it carries values of secrets" in listed.headers["warning"]
    token = (await writer.get(f"{url}?limit=1")).json()["metadata"]["continue"]
    assert b"secret" not in base64.b64decode(token + "=="), "it names the next object"
    assert "warning" not in (await root.get(url)).headers
    value = "/spec/overrideRules/0/overriders/jsonpatch/0/value"
    tries = {
        "a copy": [{"op": "copy", "from": value, "path": "/metadata/annotations"}],
        "a test": [{"op": "test", "path": value, "value": "guessed"}],
        "a right test": [{"op": "test", "path": value, "value": VALUE}],
        "a removal": [{"op": "remove", "path": "/spec/overrideRules"}],
    }
    answers = [await writer.patch(f"{url}/secret", json=each, headers=JSON_PATCH) for each in tries.values()]
    answers += [await writer.patch(f"{url}/secret", json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE)]
    answers += [
        await writer.put(f"{url}/secret", json=carrying("secret", "/spec/a")),
        await writer.get(f"{url}/secret"),
    ]
    answers += [await writer.get(f"{url}/secret/status"), await writer.get(f"{url}/secret", headers=METADATA)]
    for answer in answers:
        assert answer.status_code == 403, answer.text
        assert "it carries values of secrets, which the user cannot get" in answer.text
        assert VALUE not in answer.text
    assert (await writer.patch(f"{url}/plain", json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE)).is_success
    deleted = await writer.delete(url)
    assert [item["metadata"]["name"] for item in deleted.json()["items"]] == ["plain"]
    deleted = await writer.delete(f"{url}/secret")
    assert (deleted.status_code, deleted.json()["kind"]) == (200, "Status")
    assert VALUE not in deleted.text
    assert (await root.get(f"{url}/secret")).status_code == 404


async def test_a_watch_loses_a_policy_that_begins_to_carry_a_value(host: Tenants) -> None:
    root, url = await host.root(), f"{OURS}/namespaces/default/overridepolicies"
    begun = (await root.post(url, json=carrying("one", "/spec/a"))).json()["metadata"]["resourceVersion"]
    for path in ("/data/a", "/spec/b"):
        change = {"spec": carrying("one", path)["spec"]}
        assert (await root.patch(f"{url}/one", json=change, headers=MERGE)).is_success
    viewer = await host.client("viewer")
    query = {"watch": "1", "resourceVersion": begun, "timeoutSeconds": "1"}
    events = [orjson.loads(line) for line in (await viewer.get(url, params=query)).text.splitlines()]
    assert [event["type"] for event in events] == ["DELETED", "ADDED"]
    assert "/data/a" not in str(events)
