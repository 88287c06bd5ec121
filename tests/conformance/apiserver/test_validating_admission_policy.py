"""Conformance area "validating admission policy": expressions that accept, refuse or comment on a write."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_deployment
from tests.support.rest import TABLE, Api, Object, Refused, eventually, refused, until_not_refused

POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
CONFIG_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
MARK = "policy-probe"
"""A ConfigMap of this name is what the tests wait with until a policy is in force; every policy refuses it."""
Configure = Callable[..., str]
STALE = pytest.mark.ours("kube-apiserver never reads ConfigMaps as parameters again once no policy had used them")


def a_policy(name: str, *validations: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": {"resourceRules": [CONFIG_MAPS]}, "validations": list(validations), **spec},
    }


def a_binding(name: str, policy: str, **spec: Any) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": policy, "validationActions": ["Deny"], **spec},
    }


@pytest.fixture
def configure(api: Api) -> Iterator[Configure]:
    """Create a policy with a binding to the test's namespace, and wait until both are in force."""
    with contextlib.ExitStack() as stack:

        def created(*validations: Object, binding: Object | None = None, **spec: Any) -> str:
            name = api.namespace
            here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}}
            binding = {"matchResources": here, **(binding or {})}
            guard = a_policy(
                f"{name}-probe", {"expression": f"object.metadata.name != '{MARK}'", "message": "in force"}
            )
            for policy, bound in (
                (a_policy(name, *validations, **spec), a_binding(name, name, **binding)),
                (guard, a_binding(f"{name}-probe", f"{name}-probe", matchResources=here)),
            ):
                api.create(POLICIES, policy)
                stack.callback(api.delete, POLICIES, policy["metadata"]["name"])
                api.create(BINDINGS, bound)
                stack.callback(api.delete, BINDINGS, bound["metadata"]["name"])
            eventually(is_in_force)
            return name

        def is_in_force() -> bool:
            try:
                api.create("configmaps", a_config_map(MARK), dryRun="All")
            except Refused as refusal:
                return "ValidatingAdmissionPolicy" in refusal.message
            return False

        yield created


def warnings_of(api: Api, obj: Object) -> list[str]:
    return api.send("POST", api.url("configmaps"), obj).headers.get_list("warning")


def a_validation(expression: str, **fields: Any) -> Object:
    return {"expression": expression, **fields}


HAS_KEY = a_validation("has(object.data) && 'k' in object.data")


def test_a_failed_validation_names_policy_binding_and_expression(api: Api, configure: Configure) -> None:
    name = configure(HAS_KEY)
    api.create("configmaps", a_config_map("good"))
    text = (
        f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request:"
        f" failed expression: {HAS_KEY['expression']}"
    )
    with refused(422, "Invalid", f'configmaps "bad" is forbidden: {text}') as caught:
        api.create("configmaps", {**a_config_map("bad"), "data": {}})
    assert caught.value.causes == [{"message": text}]
    assert caught.value.status["details"]["kind"] == "configmaps"
    assert not api.exists("configmaps", "bad")


def test_a_message_stands_in_for_the_expression(api: Api, configure: Configure) -> None:
    configure({**HAS_KEY, "message": "k is needed"})
    with refused(422, "Invalid", "denied request: k is needed"):
        api.create("configmaps", {**a_config_map("bad"), "data": {}})


def test_a_message_expression_wins_over_the_message(api: Api, configure: Configure) -> None:
    configure({**HAS_KEY, "message": "unused", "messageExpression": "object.metadata.name + ' has no k'"})
    with refused(422, text="denied request: bad has no k"):
        api.create("configmaps", {**a_config_map("bad"), "data": {}})


def test_the_message_is_used_when_its_expression_fails(api: Api, configure: Configure) -> None:
    configure({**HAS_KEY, "message": "fallback", "messageExpression": "string(object.nothing)"})
    with refused(422, text="denied request: fallback"):
        api.create("configmaps", {**a_config_map("bad"), "data": {}})


@pytest.mark.parametrize(("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)])
def test_the_reason_decides_the_status(api: Api, configure: Configure, reason: str, code: int) -> None:
    configure({**HAS_KEY, "reason": reason})
    with refused(code, reason):
        api.create("configmaps", {**a_config_map("bad"), "data": {}})


def test_updates_patches_and_applies_are_validated(api: Api, configure: Configure) -> None:
    configure(a_validation("oldObject == null || object.data == oldObject.data", message="data stay"))
    made = api.create("configmaps", a_config_map("cm"))
    api.patch("configmaps", "cm", {"metadata": {"labels": {"a": "b"}}})
    with refused(422, text="data stay"):
        api.patch("configmaps", "cm", {"data": {"k": "other"}})
    with refused(422, text="data stay"):
        api.update("configmaps", {**made, "data": {"k": "other"}, "metadata": {"name": "cm"}})
    with refused(422, text="data stay"):
        api.apply("configmaps", {**a_config_map("cm"), "data": {"k": "other"}}, force=True)


def test_a_deletion_has_an_old_object_only(api: Api, configure: Configure) -> None:
    rules = [{**CONFIG_MAPS, "operations": ["DELETE"]}]
    configure(
        a_validation("object == null && !('keep' in oldObject.metadata.?labels.orValue({}))", message="kept"),
        matchConstraints={"resourceRules": rules},
    )
    api.create("configmaps", a_config_map("kept", labels={"keep": "yes"}))
    api.create("configmaps", a_config_map("free"))
    api.delete("configmaps", "free")
    with refused(422, text="kept"):
        api.delete("configmaps", "kept")
    api.patch("configmaps", "kept", {"metadata": {"labels": {"keep": None}}})
    api.delete("configmaps", "kept")


def test_subresources_are_concerned_by_name(api: Api, configure: Configure) -> None:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments/scale"]}
    configure(
        a_validation("object.kind == 'Scale' && object.spec.replicas < 5", message="at most four"),
        matchConstraints={"resourceRules": [rule]},
    )
    api.create("deployments", a_deployment(replicas=7))
    api.patch("deployments", "web", {"spec": {"replicas": 3}}, "scale")
    with refused(422, text="at most four"):
        api.patch("deployments", "web", {"spec": {"replicas": 5}}, "scale")
    api.patch("deployments", "web", {"spec": {"replicas": 6}})


def test_excluded_rules_win(api: Api, configure: Configure) -> None:
    constraints = {
        "resourceRules": [CONFIG_MAPS],
        "excludeResourceRules": [{**CONFIG_MAPS, "resourceNames": ["special"]}],
    }
    configure(a_validation("false"), matchConstraints=constraints)
    api.create("configmaps", a_config_map("special"))
    with refused(422):
        api.create("configmaps", a_config_map("ordinary"))


@pytest.mark.parametrize("is_in_policy", [True, False], ids=["policy", "binding"])
def test_object_selectors_choose(api: Api, configure: Configure, *, is_in_policy: bool) -> None:
    selector = {"objectSelector": {"matchLabels": {"guarded": "yes"}}}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.namespace}}}
    spec: Object = {"matchConstraints": {"resourceRules": [CONFIG_MAPS], **(selector if is_in_policy else {})}}
    configure(a_validation("false"), binding={"matchResources": {**here, **({} if is_in_policy else selector)}}, **spec)
    api.create("configmaps", a_config_map("free"))
    with refused(422):
        api.create("configmaps", a_config_map("guarded", labels={"guarded": "yes"}))


def test_other_namespaces_are_not_concerned(api: Api, admin: Api, configure: Configure) -> None:
    configure(a_validation("false"))
    other = f"{api.namespace}-other"
    admin.create("namespaces", {"metadata": {"name": other}})
    try:
        admin.send("POST", admin.url("configmaps", namespace=other), a_config_map("cm"))
    finally:
        admin.delete("namespaces", other)


def test_match_conditions_skip_the_policy(api: Api, configure: Configure) -> None:
    configure(
        a_validation("false"),
        matchConditions=[
            {"name": "not-mine", "expression": "!object.metadata.name.startsWith('mine')"},
            {"name": "has-a-user", "expression": "request.userInfo.username != ''"},
        ],
    )
    api.create("configmaps", a_config_map("mine"))
    with refused(422):
        api.create("configmaps", a_config_map("yours"))


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_the_failure_policy_decides_about_expressions_without_a_value(
    api: Api, configure: Configure, policy: str
) -> None:
    configure(a_validation("object.data.nothing == 'x'"), failurePolicy=policy)
    if policy == "Ignore":
        api.create("configmaps", a_config_map("cm"))
        return
    text = "denied request: expression 'object.data.nothing == 'x'' resulted in error: no such key: nothing"
    with refused(422, "Invalid", text):
        api.create("configmaps", a_config_map("cm"))


def test_variables_build_on_each_other_and_are_computed_only_when_needed(api: Api, configure: Configure) -> None:
    configure(
        a_validation(
            "variables.size < 3 || variables.broken == 1", messageExpression="'size ' + string(variables.size)"
        ),
        variables=[
            {"name": "keys", "expression": "object.data.map(key, key)"},
            {"name": "size", "expression": "size(variables.keys)"},
            {"name": "broken", "expression": "object.nothing"},
        ],
    )
    api.create("configmaps", {**a_config_map("small"), "data": {"a": "1", "b": "2"}})
    with refused(422, text="resulted in error: "):
        api.create("configmaps", {**a_config_map("large"), "data": {"a": "1", "b": "2", "c": "3"}})


def test_the_request_the_namespace_and_the_user_are_known(api: Api, configure: Configure) -> None:
    configure(
        a_validation("request.operation == 'CREATE' && request.resource.resource == 'configmaps'"),
        a_validation(f"request.namespace == '{api.namespace}' && request.kind.kind == 'ConfigMap'"),
        a_validation(f"namespaceObject.metadata.name == '{api.namespace}'"),
        a_validation("request.name == object.metadata.name && request.userInfo.groups.size() > 0"),
        a_validation("!has(request.subResource) || request.subResource == ''"),
        a_validation("oldObject == null && object.apiVersion == 'v1'"),
    )
    api.create("configmaps", a_config_map("cm"))


def test_the_authorizer_checks_the_user_s_permissions(api: Api, nobody: Api, configure: Configure) -> None:
    may = "authorizer.group('apps').resource('deployments').namespace(request.namespace).check('create').allowed()"
    itself = "authorizer.requestResource.check('create').allowed()"
    account = (
        f"authorizer.serviceAccount('{api.namespace}', 'nobody').group('').resource('secrets').check('get').allowed()"
    )
    configure(a_validation(f"{may}", message="not a developer"), a_validation(itself), a_validation(f"!{account}"))
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]
    api.create("roles", {"metadata": {"name": "writer"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"}
    subjects = [{"kind": "ServiceAccount", "name": "nobody", "namespace": api.namespace}]
    api.create("rolebindings", {"metadata": {"name": "writer"}, "roleRef": role, "subjects": subjects})
    api.create("configmaps", a_config_map("by-admin"))

    def is_refused_by_the_policy() -> bool:
        with pytest.raises(Refused) as caught:
            nobody.create("configmaps", a_config_map("by-nobody"))
        return "not a developer" in caught.value.message

    eventually(is_refused_by_the_policy)


def test_a_warning_lets_the_write_pass(api: Api, configure: Configure) -> None:
    name = configure({**HAS_KEY, "message": "k would be nice"}, binding={"validationActions": ["Warn", "Audit"]})
    (warning,) = warnings_of(api, {**a_config_map("bad"), "data": {}})
    text = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': k would be nice"
    assert warning == f'299 - "{text}"'
    assert warnings_of(api, a_config_map("good")) == []
    assert api.exists("configmaps", "bad")


def test_audit_alone_says_nothing_to_the_writer(api: Api, configure: Configure) -> None:
    configure(HAS_KEY, binding={"validationActions": ["Audit"]})
    assert warnings_of(api, {**a_config_map("bad"), "data": {}}) == []


def test_a_dry_run_is_validated(api: Api, configure: Configure) -> None:
    configure(HAS_KEY)
    with refused(422):
        api.create("configmaps", {**a_config_map("bad"), "data": {}}, dryRun="All")


PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
LIMIT = a_validation("params == null || object.data.size() <= int(params.data.limit)")


def params(api: Api, name: str, limit: int, **labels: str) -> None:
    api.create("configmaps", {"metadata": {"name": name, "labels": labels}, "data": {"limit": str(limit)}})


@STALE
def test_parameters_by_name_are_read_for_each_request(api: Api, configure: Configure) -> None:
    params(api, "limits", 1)
    reference = {"name": "limits", "namespace": api.namespace, "parameterNotFoundAction": "Deny"}
    configure(LIMIT, binding={"paramRef": reference}, **PARAMS)
    with refused(422):
        api.create("configmaps", {**a_config_map("two"), "data": {"a": "1", "b": "2"}})
    api.patch("configmaps", "limits", {"data": {"limit": "2"}})

    two: Object = {**a_config_map("two"), "data": {"a": "1", "b": "2"}}
    until_not_refused(lambda: api.create("configmaps", two), "denied request")


def test_parameters_without_a_namespace_are_those_of_the_object(api: Api, configure: Configure) -> None:
    params(api, "limits", 1)
    configure(LIMIT, binding={"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}}, **PARAMS)
    with refused(422):
        api.create("configmaps", {**a_config_map("two"), "data": {"a": "1", "b": "2"}})


@STALE
def test_every_selected_parameter_has_to_agree(api: Api, configure: Configure) -> None:
    params(api, "loose", 9, limits="yes")
    params(api, "tight", 1, limits="yes")
    params(api, "unused", 0)
    reference = {"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"}
    configure(LIMIT, binding={"paramRef": reference}, **PARAMS)
    api.create("configmaps", a_config_map("one"))
    with refused(422):
        api.create("configmaps", {**a_config_map("two"), "data": {"a": "1", "b": "2"}})


@pytest.mark.parametrize("action", ["Deny", "Allow"])
def test_absent_parameters_deny_or_allow(api: Api, configure: Configure, action: str) -> None:
    name = configure(
        a_validation("false"),
        binding={"paramRef": {"name": "nowhere", "namespace": api.namespace, "parameterNotFoundAction": action}},
        **PARAMS,
    )
    if action == "Allow":
        api.create("configmaps", a_config_map("cm"))
        return
    text = (
        f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: failed to configure binding: no"
        " params found for policy binding with `Deny` parameterNotFoundAction"
    )
    with refused(422, "Invalid", text):
        api.create("configmaps", a_config_map("cm"))


def test_custom_resources_are_validated_and_may_be_parameters(
    api: Api, configure: Configure, widgets: str, group: str
) -> None:
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["widgets"]}
    configure(a_validation("object.spec.size < 10", message="too large"), matchConstraints={"resourceRules": [rule]})
    widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    api.create(widgets, widget)
    with refused(422, text="too large"):
        api.create(widgets, {**widget, "metadata": {"name": "x"}, "spec": {"size": 30}})


def test_policies_are_served_as_kubernetes_serves_them(api: Api, configure: Configure) -> None:
    name = configure(HAS_KEY, auditAnnotations=[{"key": "seen", "valueExpression": "'yes'"}])
    policy = api.get(POLICIES, name)
    assert policy["spec"]["failurePolicy"] == "Fail"
    constraints = policy["spec"]["matchConstraints"]
    assert (constraints["matchPolicy"], constraints["namespaceSelector"], constraints["objectSelector"]) == (
        "Equivalent",
        {},
        {},
    )
    assert constraints["resourceRules"][0]["scope"] == "*"
    assert policy["metadata"]["generation"] == 1
    table = api.get(POLICIES, name, accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Validations", "ParamKind", "Age"]
    assert table["rows"][0]["cells"][:3] == [name, 1, "<unset>"]
    table = api.get(BINDINGS, name, accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "PolicyName", "ParamRef", "Age"]
    assert table["rows"][0]["cells"][:3] == [name, name, "<unset>"]


def test_the_status_has_the_observed_generation(api: Api, configure: Configure) -> None:
    name = configure(HAS_KEY)
    eventually(lambda: api.get(POLICIES, name).get("status", {}).get("observedGeneration") == 1)
    api.patch(POLICIES, name, {"spec": {"failurePolicy": "Ignore"}})
    eventually(lambda: api.get(POLICIES, name)["status"]["observedGeneration"] == 2)


def test_type_checking_warns_of_fields_that_no_concerned_kind_has(api: Api, configure: Configure) -> None:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    name = configure(a_validation("object.spec.replicaz > 1"), matchConstraints={"resourceRules": [rule]})

    def warnings() -> list[Object]:
        checked = api.get(POLICIES, name).get("status", {}).get("typeChecking", {})
        found: list[Object] = checked.get("expressionWarnings", [])
        return found

    (warning,) = eventually(warnings)
    assert warning["fieldRef"] == "spec.validations[0].expression"
    assert "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicaz'" in warning["warning"]


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"validations": [{"expression": "object.x +"}]}, "spec.validations[0].expression", "compilation failed"),
        ({"validations": [{"expression": "1 + 1"}]}, "spec.validations[0].expression", "must evaluate to bool"),
        ({"validations": [{"expression": "nothing == 1"}]}, "spec.validations[0].expression", "undeclared reference"),
        ({"validations": [{"expression": "params.x == 1"}]}, "spec.validations[0].expression", "undeclared reference"),
        (
            {"validations": [{"expression": "request.nope == 1"}]},
            "spec.validations[0].expression",
            "undefined field 'nope'",
        ),
        ({"validations": [{"expression": "variables.x == 1"}]}, "spec.validations[0].expression", ""),
        ({"validations": [{"expression": " "}]}, "spec.validations[0].expression", "expression is not specified"),
        ({"validations": [{"expression": "true", "message": "a\nb"}]}, "spec.validations[0].message", "line breaks"),
        ({"validations": [{"expression": "true", "reason": "Odd"}]}, "spec.validations[0].reason", "supported values"),
        (
            {"validations": [{"expression": "true", "messageExpression": "1"}]},
            "spec.validations[0].messageExpression",
            "must evaluate to string",
        ),
        (
            {
                "validations": [
                    {"expression": "true", "messageExpression": "authorizer.path('/x').check('get').reason()"}
                ]
            },
            "spec.validations[0].messageExpression",
            "undeclared reference",
        ),
        ({"validations": []}, "spec.validations", "must contain at least one item"),
        ({"matchConstraints": {"resourceRules": []}}, "spec.matchConstraints.resourceRules", "Required value"),
        ({"matchConstraints": None}, "spec.matchConstraints", "Required value"),
        (
            {"matchConstraints": {"resourceRules": [{**CONFIG_MAPS, "operations": ["READ"]}]}},
            "spec.matchConstraints.resourceRules[0].operations[0]",
            "Unsupported value",
        ),
        ({"failurePolicy": "Maybe"}, "spec.failurePolicy", "Unsupported value"),
        ({"matchConditions": [{"name": "c", "expression": "1"}]}, "spec.matchConditions[0].expression", "bool"),
        ({"matchConditions": [{"expression": "true"}]}, "spec.matchConditions[0].name", "Required value"),
        (
            {"variables": [{"name": "a-b", "expression": "1"}]},
            "spec.variables[0].name",
            "must be a valid CEL identifier",
        ),
        ({"variables": [{"name": "a", "expression": "1 +"}]}, "spec.variables[0].expression", "compilation failed"),
        ({"paramKind": {"apiVersion": "v1"}}, "spec.paramKind.kind", "Required value"),
        (
            {"auditAnnotations": [{"key": "a b", "valueExpression": "'x'"}]},
            "spec.auditAnnotations[0].key",
            "name part must consist of",
        ),
        (
            {"auditAnnotations": [{"key": "a", "valueExpression": "1"}]},
            "spec.auditAnnotations[0].valueExpression",
            "must evaluate to one of",
        ),
    ],
)
def test_a_policy_that_cannot_work_is_refused(api: Api, spec: Object, field: str, text: str) -> None:
    policy = a_policy(api.namespace, a_validation("true"))
    policy["spec"] = {**policy["spec"], **spec}
    with refused(422, "Invalid") as caught:
        api.create(POLICIES, policy)
    assert any(field == cause["field"] and text in cause["message"] for cause in caught.value.causes), caught.value


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"policyName": ""}, "spec.policyName"),
        ({"validationActions": []}, "spec.validationActions"),
        ({"validationActions": ["Deny", "Warn"]}, "spec.validationActions"),
        ({"validationActions": ["Shout"]}, "spec.validationActions[0]"),
        ({"paramRef": {"parameterNotFoundAction": "Deny"}}, "spec.paramRef"),
        ({"paramRef": {"name": "x"}}, "spec.paramRef.parameterNotFoundAction"),
        ({"paramRef": {"name": "x", "selector": {}, "parameterNotFoundAction": "Deny"}}, "spec.paramRef.name"),
    ],
)
def test_a_binding_that_cannot_work_is_refused(api: Api, spec: Object, field: str) -> None:
    with refused(422, "Invalid") as caught:
        api.create(BINDINGS, a_binding(api.namespace, "policy", **spec))
    assert field in caught.value.fields


def test_a_policy_without_a_binding_does_nothing(api: Api, configure: Configure) -> None:
    configure(HAS_KEY)
    name = f"{api.namespace}-unbound"
    api.create(POLICIES, a_policy(name, a_validation("false")))
    try:
        api.create("configmaps", a_config_map("cm"))
    finally:
        api.delete(POLICIES, name)


def _checked(api: Api, name: str) -> list[Object]:
    """Return the warnings of a policy once its types are checked."""
    status = eventually(lambda: "typeChecking" in (found := api.get(POLICIES, name).get("status", {})) and found)
    warnings: list[Object] = status["typeChecking"].get("expressionWarnings", [])
    return warnings


DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}


def test_type_checking_warns_of_every_expression(api: Api, configure: Configure) -> None:
    """[sig-api-machinery] ValidatingAdmissionPolicy should type check validation expressions."""
    message = "'wants replicas > 1, got ' + object.spec.replicas"
    validation = a_validation("object.spec.replicas > '1'", messageExpression=message)
    name = configure(validation, matchConstraints={"resourceRules": [DEPLOYMENTS]})
    first, second = _checked(api, name)
    assert first["fieldRef"] == "spec.validations[0].expression"
    assert "<input>:1:22: found no matching overload for '_>_' applied to '(int, string)'" in first["warning"]
    assert "object.spec.replicas > '1'" in first["warning"]
    assert second["fieldRef"] == "spec.validations[0].messageExpression"
    assert "found no matching overload for '_+_' applied to '(string, int)'" in second["warning"]


CORRECT = (
    "has(object.spec.replicas) && object.spec.replicas > 1 && object.metadata.name.startsWith('x')"
    " && object.spec.template.spec.containers.all(c, c.name != '') && object.spec.paused == true"
    " && object.metadata.labels['a'] == 'b' && variables.replicas < 5"
)
REPLICAS = {"name": "replicas", "expression": "object.spec.replicas"}


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("variables.replicas > '1'", "found no matching overload for '_>_' applied to '(int, string)'"),
        (
            "object.metadata.name + object.spec.replicas == 'x'",
            "found no matching overload for '_+_' applied to '(string, int)'",
        ),
        (CORRECT, ""),
    ],
)
def test_type_checking_follows_variables_and_fields(
    api: Api, configure: Configure, expression: str, problem: str
) -> None:
    match = {"resourceRules": [DEPLOYMENTS]}
    name = configure(a_validation(expression), variables=[REPLICAS], matchConstraints=match)
    warnings = _checked(api, name)
    assert len(warnings) == bool(problem)
    assert all(problem in warning["warning"] for warning in warnings)


def test_type_checking_knows_custom_resources(api: Api, configure: Configure, widgets: str, group: str) -> None:
    """[sig-api-machinery] ValidatingAdmissionPolicy should type check a CRD."""
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}
    name = configure(
        a_validation("object.spec.size > '1'"),
        a_validation("object.spec.weight < 10"),
        matchConstraints={"resourceRules": [rule]},
    )
    attempts = itertools.count()

    def warnings() -> list[Object]:
        # The real server knows a new kind after a while, and checks again only when the policy changes.
        annotation = {"key": "attempt", "valueExpression": f"'{next(attempts)}'"}
        api.patch(POLICIES, name, {"spec": {"auditAnnotations": [annotation]}})
        return _checked(api, name)

    first, second = eventually(warnings)
    assert "found no matching overload for '_>_' applied to '(int, string)'" in first["warning"]
    assert second["fieldRef"] == "spec.validations[1].expression"
    assert "undefined field 'weight'" in second["warning"]


@pytest.mark.parametrize(("asked", "sent"), [("v1", "v2"), ("v2", "v1")])
def test_an_equivalent_policy_sees_an_autoscaler_in_its_own_version(
    api: Api, configure: Configure, asked: str, sent: str
) -> None:
    """matchPolicy Equivalent is the default: the policy's version counts, not the request's."""
    expressions = {
        "v1": "object.spec.targetCPUUtilizationPercentage < 90",
        "v2": "object.spec.metrics.all(m, m.resource.target.averageUtilization < 90)",
    }
    rules = {
        "apiGroups": ["autoscaling"],
        "apiVersions": [asked],
        "operations": ["CREATE"],
        "resources": ["horizontalpodautoscalers"],
    }
    configure(
        {"expression": expressions[asked], "message": "too late"},
        matchConstraints={"resourceRules": [rules, CONFIG_MAPS]},
        matchConditions=[{"name": "kind", "expression": "object.kind == 'HorizontalPodAutoscaler'"}],
    )
    metric = {"type": "Utilization", "averageUtilization": 95}
    targets: Object = {
        "v1": {"targetCPUUtilizationPercentage": 95},
        "v2": {"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": metric}}]},
    }
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "no"}
    autoscaler = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": reference, **targets[sent]}}
    with refused(422, "Invalid", "too late"):
        api.create(f"autoscaling/{sent}/horizontalpodautoscalers", autoscaler, dryRun="All")
