"""Conformance area "mutating admission policy": expressions that change an object before it is stored."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_deployment
from tests.support.rest import MERGE, TABLE, Api, Object, Refused, eventually, refused

POLICIES, BINDINGS = "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"
CONFIG_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
DEPLOYMENTS = {**CONFIG_MAPS, "apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"]}
MARK = "policy-probe"
"""A ConfigMap of this name is what the tests wait with until a policy is in force. A policy gives it an annotation; a label
would be lost where a policy under test replaces all labels and comes later, and the order of policies is not defined."""
Configure = Callable[..., str]


def applying(expression: str) -> Object:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patching(expression: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def labelling(name: str, value: str = '"yes"') -> Object:
    return applying(f'Object{{metadata: Object.metadata{{labels: {{"{name}": {value}}}}}}}')


def setting(key: str, value: str) -> Object:
    return applying(f'Object{{data: {{"{key}": {value}}}}}')


def a_policy(name: str, *mutations: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [CONFIG_MAPS]},
            "mutations": list(mutations),
            "reinvocationPolicy": "Never",
            **spec,
        },
    }


def a_binding(name: str, policy: str, **spec: Any) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": policy, **spec},
    }


@pytest.fixture
def configure(api: Api) -> Iterator[Configure]:
    """Create a policy with a binding to the test's namespace, and wait until both are in force."""
    with contextlib.ExitStack() as stack:

        def created(*mutations: Object, binding: Object | None = None, suffix: str = "", **spec: Any) -> str:
            name = f"{api.namespace}{suffix}"
            here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}}
            binding = {"matchResources": here, **(binding or {})}
            only_mark = [{"name": "mark", "expression": f"object.metadata.name == '{MARK}'"}]
            annotating = applying(f'Object{{metadata: Object.metadata{{annotations: {{"probe{suffix}": "yes"}}}}}}')
            probe = a_policy(f"{name}-probe", annotating, matchConditions=only_mark)
            for policy, bound in (
                (a_policy(name, *mutations, **spec), a_binding(name, name, **binding)),
                (probe, a_binding(f"{name}-probe", f"{name}-probe", matchResources=here)),
            ):
                api.create(POLICIES, policy)
                stack.callback(api.delete, POLICIES, policy["metadata"]["name"])
                api.create(BINDINGS, bound)
                stack.callback(api.delete, BINDINGS, bound["metadata"]["name"])
            eventually(lambda: is_in_force(f"probe{suffix}"))
            return name

        def is_in_force(annotation: str) -> bool:
            # A policy under test may refuse the probe; then it is in force itself.
            try:
                made = api.create("configmaps", a_config_map(MARK), dryRun="All")
            except Refused as refusal:
                return "policy" in refusal.message
            return annotation in (made["metadata"].get("annotations") or {})

        yield created


def denied(name: str, problem: str) -> str:
    return f"policy '{name}' with binding '{name}' denied request: {problem}"


def test_an_apply_configuration_is_merged(api: Api, configure: Configure) -> None:
    configure(applying('Object{metadata: Object.metadata{labels: {"by": "policy"}}, data: {"added": "1"}}'))
    made = api.create("configmaps", a_config_map("cm", labels={"own": "x"}))
    assert made["metadata"]["labels"] == {"own": "x", "by": "policy"}
    assert made["data"]["added"] == "1"
    assert made["data"]["k"] == a_config_map("cm")["data"]["k"]
    assert api.get("configmaps", "cm")["data"] == made["data"]


def test_a_json_patch_is_applied(api: Api, configure: Configure) -> None:
    configure(
        patching(
            """[
              JSONPatch{op: "test", path: "/data/k", value: object.data.k},
              JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}},
              JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("x.io/y"), value: "c"},
              JSONPatch{op: "move", from: "/data/k", path: "/data/moved"}
            ]"""
        )
    )
    made = api.create("configmaps", a_config_map("cm"))
    assert made["metadata"]["labels"] == {"a": "b", "x.io/y": "c"}
    assert made["data"] == {"moved": a_config_map("cm")["data"]["k"]}


def test_a_mutated_object_is_validated(api: Api, configure: Configure) -> None:
    configure(labelling("a~b"))
    with refused(422, "Invalid", "metadata.labels"):
        api.create("configmaps", a_config_map("cm"))


def test_json_patch_values_are_objects_maps_lists_and_scalars(api: Api, configure: Configure) -> None:
    configure(
        patching(
            """[
              JSONPatch{op: "add", path: "/spec/template/spec/nodeSelector", value: {"disk": "ssd"}},
              JSONPatch{op: "replace", path: "/spec/replicas", value: object.spec.replicas + 1},
              JSONPatch{op: "add", path: "/spec/template/spec/tolerations", value: [{"key": "a", "operator": "Exists"}]},
              JSONPatch{op: "add", path: "/spec/strategy", value: Object.spec.strategy{type: "Recreate"}},
              JSONPatch{op: "replace", path: "/spec/paused", value: true}
            ]"""
        ),
        matchConstraints={"resourceRules": [DEPLOYMENTS]},
    )
    spec = api.create("deployments", a_deployment("web", replicas=2))["spec"]
    assert (spec["replicas"], spec["paused"]) == (3, True)
    assert spec["template"]["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert spec["template"]["spec"]["tolerations"] == [{"key": "a", "operator": "Exists"}]
    assert spec["strategy"] == {"type": "Recreate"}


@pytest.mark.ours("kube-apiserver drops the connection: it cannot convert lists of objects")
def test_json_patch_values_are_lists_of_objects(api: Api, configure: Configure) -> None:
    toleration = 'Object.spec.template.spec.tolerations{key: "a", operator: "Exists"}'
    configure(
        patching(f'[JSONPatch{{op: "add", path: "/spec/template/spec/tolerations", value: [{toleration}]}}]'),
        matchConstraints={"resourceRules": [DEPLOYMENTS]},
    )
    spec = api.create("deployments", a_deployment("web"))["spec"]
    assert spec["template"]["spec"]["tolerations"] == [{"key": "a", "operator": "Exists"}]


def test_a_failed_test_operation_skips_the_patch(api: Api, configure: Configure) -> None:
    configure(
        patching('[JSONPatch{op: "test", path: "/data/k", value: "?"}, JSONPatch{op: "remove", path: "/data"}]'),
        patching('[JSONPatch{op: "test", path: "/data/none", value: "?"}, JSONPatch{op: "remove", path: "/data"}]'),
        labelling("after"),
    )
    made = api.create("configmaps", a_config_map("cm"))
    assert made["data"] == a_config_map("cm")["data"]
    assert made["metadata"]["labels"] == {"after": "yes"}


def test_containers_are_merged_by_name_and_defaulted(api: Api, configure: Configure) -> None:
    configure(
        applying(
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
            'containers: [Object.spec.template.spec.containers{name: "extra", image: "sidecar"}]}}}}'
        ),
        patching(
            '[JSONPatch{op: "add", path: "/metadata/labels", value: {"seen":'
            " object.spec.template.spec.containers.map(c, c.imagePullPolicy).join('-')}}]"
        ),
        matchConstraints={"resourceRules": [DEPLOYMENTS]},
    )
    made = api.create("deployments", a_deployment("web"))
    containers = made["spec"]["template"]["spec"]["containers"]
    assert [container["name"] for container in containers][-1] == "extra"
    assert containers[-1]["terminationMessagePolicy"] == "File"
    assert made["metadata"]["labels"]["seen"].endswith("-Always")


def test_mutations_and_policies_see_the_changes_before_them(api: Api, configure: Configure) -> None:
    before = 'object.?data.trace.orValue("")'
    configure(setting("trace", f'{before} + "1"'), setting("trace", 'object.data.trace + "2"'), suffix="-a")
    configure(setting("trace", f'{before} + "3"'), suffix="-b")
    assert api.create("configmaps", a_config_map("cm"))["data"]["trace"] in ("123", "312")


def test_updates_patches_and_applies_are_mutated(api: Api, configure: Configure) -> None:
    configure(setting("op", "request.operation"))
    assert api.create("configmaps", a_config_map("cm"))["data"]["op"] == "CREATE"
    assert api.patch("configmaps", "cm", {"data": {"k": "2"}})["data"]["op"] == "UPDATE"
    assert api.update("configmaps", {**a_config_map("cm"), "data": {"k": "3"}})["data"] == {"k": "3", "op": "UPDATE"}
    assert api.apply("configmaps", {**a_config_map("cm"), "data": {"k": "4"}}, force=True)["data"]["op"] == "UPDATE"
    api.delete("configmaps", "cm")


def test_dry_runs_are_mutated_and_not_stored(api: Api, configure: Configure) -> None:
    configure(labelling("dry"))
    assert api.create("configmaps", a_config_map("cm"), dryRun="All")["metadata"]["labels"] == {"dry": "yes"}
    assert not api.exists("configmaps", "cm")


def test_conditions_select_requests(api: Api, configure: Configure) -> None:
    configure(labelling("picked"), matchConditions=[{"name": "k", "expression": "object.data.k == 'pick'"}])
    assert "labels" not in api.create("configmaps", a_config_map("other"))["metadata"]
    made = api.create("configmaps", {**a_config_map("cm"), "data": {"k": "pick"}})
    assert made["metadata"]["labels"] == {"picked": "yes"}


def test_variables_are_shared_by_mutations(api: Api, configure: Configure) -> None:
    configure(
        labelling("a", "variables.twice"),
        patching('[JSONPatch{op: "add", path: "/data/b", value: variables.twice}]'),
        variables=[
            {"name": "once", "expression": "object.data.k"},
            {"name": "twice", "expression": "variables.once + variables.once"},
        ],
    )
    made = api.create("configmaps", {**a_config_map("cm"), "data": {"k": "v"}})
    assert (made["metadata"]["labels"]["a"], made["data"]["b"]) == ("vv", "vv")


def test_parameters_are_read(api: Api, configure: Configure) -> None:
    api.create("secrets", {"metadata": {"name": "params", "labels": {"p": "yes"}}, "stringData": {"x": "y"}})
    configure(
        labelling("param", "params.metadata.name"),
        paramKind={"apiVersion": "v1", "kind": "Secret"},
        binding={"paramRef": {"selector": {"matchLabels": {"p": "yes"}}, "parameterNotFoundAction": "Deny"}},
    )
    assert api.create("configmaps", a_config_map("cm"))["metadata"]["labels"] == {"param": "params"}


def test_missing_parameters_deny_the_request(api: Api, configure: Configure) -> None:
    name = configure(
        labelling("param"),
        paramKind={"apiVersion": "v1", "kind": "Secret"},
        binding={"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}},
    )
    problem = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    with refused(403, "Forbidden", denied(name, problem)):
        api.create("configmaps", a_config_map("cm"))


def test_an_evaluation_error_denies_the_request(api: Api, configure: Configure) -> None:
    expression = 'Object{data: {"x": object.data.none}}'
    name = configure(applying(expression))
    text = denied(name, f"expression '{expression}' resulted in error: no such key: none")
    with refused(403, "Invalid", text) as caught:
        api.create("configmaps", a_config_map("cm"))
    assert caught.value.causes == [{"message": text}]
    assert caught.value.status["details"]["kind"] == "configmaps"
    assert caught.value.status["details"]["name"] == "cm"


def test_every_error_is_a_cause(api: Api, configure: Configure) -> None:
    broken = 'Object{data: {"x": object.data.%s}}'
    name = configure(applying(broken % "a"), labelling("fine"), applying(broken % "b"))
    texts = [denied(name, f"expression '{broken % key}' resulted in error: no such key: {key}") for key in ("a", "b")]
    with refused(403, "Invalid", texts[0]) as caught:
        api.create("configmaps", a_config_map("cm"))
    assert caught.value.causes == [{"message": text} for text in texts]


def test_failure_policy_ignore_keeps_what_other_mutations_did(api: Api, configure: Configure) -> None:
    configure(labelling("a"), applying('Object{data: {"x": object.data.none}}'), labelling("b"), failurePolicy="Ignore")
    made = api.create("configmaps", a_config_map("cm"))
    assert made["metadata"]["labels"] == {"a": "yes", "b": "yes"}


@pytest.mark.parametrize(
    ("mutation", "problem"),
    [
        (
            applying('Object{metadata: Object.wrong{labels: {"a": "b"}}}'),
            'type mismatch: unexpected type name "Object.wrong", expected "Object.metadata", which matches field name',
        ),
        (
            applying('Object{nothing: "x"}'),
            "error applying patch: failed to convert patch object to typed object: .nothing: field not declared",
        ),
        (
            patching('[JSONPatch{op: "remove", path: "/none/of/it"}]'),
            "JSON Patch: remove operation does not apply: doc is missing ",
        ),
    ],
    ids=["the name of a type", "an unknown field", "a missing path"],
)
def test_a_patch_that_cannot_be_applied_is_denied(
    api: Api, configure: Configure, mutation: Object, problem: str
) -> None:
    name = configure(mutation)
    with refused(403, "Invalid", denied(name, problem)):
        api.create("configmaps", a_config_map("cm"))


def test_atomic_fields_cannot_be_applied(api: Api, configure: Configure) -> None:
    name = configure(
        applying(
            "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
            'containers: [Object.spec.template.spec.containers{name: "main", args: ["-v"]}]}}}}'
        ),
        matchConstraints={"resourceRules": [DEPLOYMENTS]},
    )
    problem = (
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs:"
        " .spec.template.spec.containers[0].args"
    )
    with refused(403, "Invalid", denied(name, problem)):
        api.create("deployments", a_deployment("web"))


def test_unknown_fields_of_a_json_patch_are_an_error_of_the_server(api: Api, configure: Configure) -> None:
    configure(
        patching('[JSONPatch{op: "add", path: "/nothing", value: "x"}]'),
        matchConditions=[{"name": "cm", "expression": "object.metadata.name == 'cm'"}],
        failurePolicy="Ignore",
    )
    with refused(500, "InternalError", 'strict decoding error: unknown field "nothing"'):
        api.create("configmaps", a_config_map("cm"))


def test_a_policy_is_reinvoked_if_needed(api: Api, configure: Configure) -> None:
    configure(setting("a", 'object.?data.a.orValue("") + "a"'), reinvocationPolicy="IfNeeded", suffix="-a")
    configure(setting("b", 'object.?data.b.orValue("") + "b"'), suffix="-b")
    data = api.create("configmaps", a_config_map("cm"))["data"]
    assert (data["a"], data["b"]) == ("aa", "b")


def test_a_lone_policy_is_reinvoked_as_well(api: Api, configure: Configure) -> None:
    configure(setting("a", 'object.?data.a.orValue("") + "a"'), reinvocationPolicy="IfNeeded")
    assert api.create("configmaps", a_config_map("cm"))["data"]["a"] == "aa"


def test_scales_are_mutated_as_scales(api: Api, configure: Configure) -> None:
    api.create("deployments", a_deployment("web", replicas=1))
    configure(
        patching('[JSONPatch{op: "replace", path: "/spec/replicas", value: 5}]'),
        matchConstraints={"resourceRules": [DEPLOYMENTS]},
        matchConditions=[{"name": "scale", "expression": "request.kind.kind == 'Scale'"}],
    )
    api.patch("deployments", "web", {"spec": {"replicas": 2}}, subresource="scale")
    assert api.get("deployments", "web")["spec"]["replicas"] == 5


def test_a_deletion_is_not_mutated(api: Api, configure: Configure) -> None:
    api.create("configmaps", a_config_map("cm"))
    configure(applying('Object{data: {"x": object.data.none}}'))
    api.delete("configmaps", "cm")
    assert not api.exists("configmaps", "cm")


def test_policies_are_not_subject_to_policies(api: Api, configure: Configure) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    condition = {"name": "own", "expression": f"object.metadata.name.startsWith('{api.namespace}')"}
    configure(
        labelling("caught"),
        matchConstraints={"resourceRules": [everything]},
        matchConditions=[condition],
        binding={"matchResources": {}},
    )
    assert "labels" not in api.get(POLICIES, f"{api.namespace}-probe")["metadata"]
    changed = api.patch(POLICIES, f"{api.namespace}-probe", {"metadata": {"annotations": {"a": "b"}}})
    assert "labels" not in changed["metadata"]


@pytest.mark.parametrize(
    ("changes", "causes"),
    [
        (
            {"mutations": []},
            [("FieldValueRequired", "spec.mutations", "Required value: mutations must contain at least one item")],
        ),
        ({"reinvocationPolicy": ""}, [("FieldValueRequired", "spec.reinvocationPolicy", "Required value")]),
        (
            {"reinvocationPolicy": "Always"},
            [
                (
                    "FieldValueNotSupported",
                    "spec.reinvocationPolicy",
                    'Unsupported value: "Always": supported values: "IfNeeded", "Never"',
                )
            ],
        ),
        ({"matchConstraints": None}, [("FieldValueRequired", "spec.matchConstraints", "Required value")]),
        (
            {"matchConstraints": {"resourceRules": [{**CONFIG_MAPS, "operations": ["CREATE", "DELETE"]}]}},
            [
                (
                    "FieldValueNotSupported",
                    "spec.matchConstraints.resourceRules.operations",
                    'Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
                )
            ],
        ),
        (
            {"mutations": [{"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}]},
            [
                (
                    "FieldValueRequired",
                    "spec.mutations[0].jsonPatch",
                    "Required value: must be specified when patchType is JSONPatch",
                ),
                (
                    "FieldValueInvalid",
                    "spec.mutations[0].applyConfiguration",
                    'Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch',
                ),
            ],
        ),
        (
            {"mutations": [applying(" ")]},
            [("FieldValueRequired", "spec.mutations[0].applyConfiguration.expression", "Required value")],
        ),
        (
            {"mutations": [{"patchType": "Merge"}]},
            [
                (
                    "FieldValueNotSupported",
                    "spec.mutations[0].patchType",
                    'Unsupported value: "Merge": supported values: "ApplyConfiguration", "JSONPatch"',
                )
            ],
        ),
    ],
    ids=[
        "no mutation",
        "no reinvocation policy",
        "a wrong reinvocation policy",
        "no constraints",
        "deletions",
        "the patch of the other type",
        "no expression",
        "an unknown patch type",
    ],
)
def test_a_malformed_policy_is_refused(api: Api, changes: Object, causes: list[tuple[str, str, str]]) -> None:
    with refused(422, "Invalid") as caught:
        api.create(POLICIES, a_policy(api.namespace, **{"mutations": [labelling("a")], **changes}))
    assert [(cause["reason"], cause["field"], cause["message"]) for cause in caught.value.causes] == causes


@pytest.mark.parametrize(
    ("mutation", "problem"),
    [
        (applying("object"), "must evaluate to Object but got dyn"),
        (applying("Object.spec{}"), "must evaluate to Object but got Object.spec"),
        (applying("1"), "must evaluate to Object but got int"),
        (applying('{"a": "b"}'), "must evaluate to Object but got map(string, string)"),
        (patching("[]"), "must evaluate to list(JSONPatch) but got list(dyn)"),
        (patching("Object{}"), "must evaluate to list(JSONPatch) but got Object"),
        (patching("JSONPatch{}"), "must evaluate to list(JSONPatch) but got JSONPatch"),
        (
            patching("[JSONPatch{op: 1}]"),
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        (applying("Object{spec: nothing}"), "undeclared reference to 'nothing'"),
        (applying("Object{spec: Foo{}}"), "undeclared reference to 'Foo'"),
        (applying("Object{spec: variables.none}"), "undefined field 'none'"),
    ],
)
def test_an_expression_of_a_wrong_type_is_refused(api: Api, mutation: Object, problem: str) -> None:
    with refused(422, "Invalid", problem):
        api.create(POLICIES, a_policy(api.namespace, mutation))


def test_variables_know_no_types_of_patches(api: Api) -> None:
    with refused(422, "Invalid", "undeclared reference to 'Object'"):
        api.create(
            POLICIES, a_policy(api.namespace, labelling("a"), variables=[{"name": "x", "expression": "Object{}"}])
        )


def test_a_binding_needs_a_policy_and_no_deletions(api: Api) -> None:
    rules = [{**CONFIG_MAPS, "operations": ["DELETE"]}]
    with refused(422, "Invalid") as caught:
        api.create(BINDINGS, a_binding(api.namespace, "", matchResources={"resourceRules": rules}))
    assert [(cause["field"], cause["message"]) for cause in caught.value.causes] == [
        ("spec.policyName", "Required value"),
        (
            "spec.matchResources.resourceRules.operations",
            'Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
        ),
    ]


def test_defaults_are_filled(api: Api) -> None:
    name = api.namespace
    try:
        spec = api.create(POLICIES, a_policy(name, labelling("a")))["spec"]
        assert spec["failurePolicy"] == "Fail"
        assert spec["matchConstraints"]["matchPolicy"] == "Equivalent"
        assert spec["matchConstraints"]["namespaceSelector"] == {}
        assert spec["matchConstraints"]["resourceRules"][0]["scope"] == "*"
    finally:
        api.delete(POLICIES, name)


def test_tables_count_mutations(api: Api) -> None:
    name = api.namespace
    api.create(POLICIES, a_policy(name, labelling("a"), labelling("b")))
    api.create(BINDINGS, a_binding(name, name))
    try:
        table = api.get(POLICIES, name, accept=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Mutations", "ParamKind", "Age"]
        assert table["rows"][0]["cells"][:3] == [name, 2, "<unset>"]
        table = api.get(BINDINGS, name, accept=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "PolicyName", "ParamRef", "Age"]
        assert table["rows"][0]["cells"][:3] == [name, name, "<unset>"]
    finally:
        api.delete(BINDINGS, name)
        api.delete(POLICIES, name)


def test_parameters_need_the_permission_to_read_them(api: Api) -> None:
    name = api.namespace
    rule = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    headers = {"Impersonate-User": name}
    policy = a_policy(name, labelling("a"), paramKind={"apiVersion": "v1", "kind": "Secret"})
    binding = a_binding(name, name, paramRef={"name": "x", "namespace": name, "parameterNotFoundAction": "Deny"})
    api.create("clusterroles", {**role, "rules": [rule]})
    api.create(
        "clusterrolebindings", {**role, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
    )
    try:
        eventually(lambda: may_list_policies(api, headers))
        text = 'must have "get" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)'
        with refused(422, "Invalid", text) as caught:
            api.send("POST", api.url(POLICIES), policy, headers=headers)
        assert [cause["field"] for cause in caught.value.causes] == ["spec.paramKind"]
        api.create(POLICIES, policy)
        with refused(422, "Invalid", "permission on the object referenced by paramRef") as caught:
            api.send("POST", api.url(BINDINGS), binding, headers=headers)
        assert [cause["field"] for cause in caught.value.causes] == ["spec.paramRef"]
        api.send("PATCH", api.url(POLICIES, name), {"metadata": {"labels": {"a": "b"}}}, type_=MERGE, headers=headers)
        api.delete(POLICIES, name)
    finally:
        api.delete("clusterrolebindings", name)
        api.delete("clusterroles", name)


def may_list_policies(api: Api, headers: dict[str, str]) -> bool:
    try:
        api.send("GET", api.url(POLICIES), headers=headers)
    except Refused:
        return False
    return True
