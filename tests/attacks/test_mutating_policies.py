"""Hostile MutatingAdmissionPolicies: they exhaust neither memory nor time, read nothing for their author, and end."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map
from tests.conformance.apiserver.test_mutating_admission_policy import (
    BINDINGS,
    POLICIES,
    a_binding,
    a_policy,
    applying,
    labelling,
    patching,
    setting,
)
from tests.support.apiserver import api_server
from tests.support.rest import Api, Object, refused

from federation.client.kubeconfig import load_kubeconfig


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with api_server(tmp_path_factory.mktemp("mutating")) as parts:
        api = Api(load_kubeconfig(parts.kubeconfig), "default")
        yield api
        api.close()


@pytest.fixture
def api(server: Api) -> Iterator[Api]:
    yield server
    for plural in (BINDINGS, POLICIES):
        for name in server.names(plural):
            server.delete(plural, name)


def bound(api: Api, *mutations: Object, name: str = "p", **spec: Any) -> None:
    api.create(POLICIES, a_policy(name, *mutations, **spec))
    api.create(BINDINGS, a_binding(name, name))


def test_mutations_that_double_the_object_end_at_a_limit(api: Api) -> None:
    bound(api, setting("x", '"x"'), *(setting("x", "object.data.x + object.data.x") for _ in range(64)))
    with refused(403, "Invalid", "the patches of all mutations of a request must not exceed 3145728 bytes"):
        api.create("configmaps", a_config_map("cm"))


def test_patches_that_copy_the_object_end_at_a_limit(api: Api) -> None:
    double = '[JSONPatch{op: "copy", from: "/spec", path: "/spec/c%d"}]'
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["anys"]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "anys.mutating.example.com"},
        "spec": {
            "group": "mutating.example.com",
            "scope": "Namespaced",
            "names": {"plural": "anys", "singular": "any", "kind": "Any", "listKind": "AnyList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                        }
                    },
                }
            ],
        },
    }
    api.create("customresourcedefinitions", definition)
    bound(api, *(patching(double % n) for n in range(40)), matchConstraints={"resourceRules": [rule]})
    url = "/apis/mutating.example.com/v1/namespaces/default/anys"
    made = {
        "apiVersion": "mutating.example.com/v1",
        "kind": "Any",
        "metadata": {"name": "a"},
        "spec": {"text": "x" * 999},
    }
    try:
        with refused(403, "Invalid", "must not exceed 3145728 bytes"):
            api.send("POST", url, made)
    finally:
        api.delete("customresourcedefinitions", "anys.mutating.example.com")


def test_a_policy_that_always_changes_the_object_runs_twice(api: Api) -> None:
    for name in ("a", "b"):
        bound(api, setting("n", 'object.?data.n.orValue("") + "+"'), name=name, reinvocationPolicy="IfNeeded")
    assert api.create("configmaps", a_config_map("loop"))["data"]["n"] == "++++"
    api.delete("configmaps", "loop")


@pytest.mark.timeout(60)
def test_an_expression_that_loops_is_stopped(api: Api) -> None:
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    loops = f"{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, {numbers}.all(d, {numbers}.all(e, true)))))"
    bound(api, labelling("x", f'{loops} ? "a" : "b"'))
    with refused(403, "Invalid", "validation failed due to running out of cost budget"):
        api.create("configmaps", a_config_map("cm"))


@pytest.mark.parametrize(
    "mutation",
    [
        applying("Object{data: optional.of({})}"),
        applying('Object{data: {"a": object.data[?"k"]}}'),
        patching('[JSONPatch{op: "add", path: "/data", value: dyn({"a": optional.none()})}]'),
    ],
)
def test_expressions_that_would_abort_the_process_are_refused(api: Api, mutation: Object) -> None:
    with refused(422, "Invalid", "an optional value cannot be stored"):
        api.create(POLICIES, a_policy("abort", mutation))


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ('[JSONPatch{op: "replace", path: "/metadata/name", value: "other"}]', 400),
        ('[JSONPatch{op: "replace", path: "/metadata/namespace", value: "kube-system"}]', 400),
        ('[JSONPatch{op: "replace", path: "/kind", value: "Secret"}]', 400),
        ('[JSONPatch{op: "remove", path: "/metadata"}]', 500),
        ('[JSONPatch{op: "replace", path: "", value: []}]', 500),
        ('[JSONPatch{op: "replace", path: "/data", value: "text"}]', 500),
    ],
)
def test_a_patch_cannot_make_another_object_of_it(api: Api, patch: str, code: int) -> None:
    bound(api, patching(patch))
    with refused(code):
        api.create("configmaps", a_config_map("cm"))
    assert not api.exists("configmaps", "cm")
    assert not api.exists("configmaps", "other")


def test_system_fields_cannot_be_patched(api: Api) -> None:
    made = api.create("configmaps", a_config_map("system"))
    bound(api, patching('[JSONPatch{op: "add", path: "/metadata/generation", value: 7}]'), name="a")
    assert "generation" not in api.patch("configmaps", "system", {"data": {"k": "2"}})["metadata"]
    time_patch = '[JSONPatch{op: "add", path: "/metadata/creationTimestamp", value: "2001-01-01T00:00:00Z"}]'
    bound(api, patching(time_patch), name="b")
    patched = api.patch("configmaps", "system", {"data": {"k": "3"}})
    assert patched["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


def test_parameters_are_not_read_for_a_user_who_may_not(api: Api) -> None:
    rule = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "policies"}}
    api.create("clusterroles", {**role, "rules": [rule]})
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "policies"}
    api.create(
        "clusterrolebindings",
        {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]},
    )
    headers = {"Impersonate-User": "mallory"}
    secrets = {"paramKind": {"apiVersion": "v1", "kind": "Secret"}}
    with refused(422, "Invalid", 'must have "get" permission on all objects of the referenced paramKind'):
        api.send("POST", api.url(POLICIES), a_policy("p", labelling("a"), **secrets), headers=headers)
    api.send("POST", api.url(POLICIES), a_policy("free", labelling("a")), headers=headers)
    api.create(POLICIES, a_policy("p", labelling("a"), **secrets))
    binding = a_binding("b", "p", paramRef={"name": "x", "namespace": "kube-system", "parameterNotFoundAction": "Deny"})
    with refused(422, "Invalid", "permission on the object referenced by paramRef"):
        api.send("POST", api.url(BINDINGS), binding, headers=headers)
    api.create(BINDINGS, binding)
