"""Validation rules of custom resources: messages, paths, transition rules, and Kubernetes' CEL library."""

import subprocess
import sys

import pytest

from federation.apiserver.semantics.cel.programs import CompileError, EvaluationError, compile_expression
from federation.apiserver.semantics.cel.rules import compile_rules
from federation.apiserver.semantics.crd.rulevalidation import validate_rules
from federation.apiserver.semantics.crd.structural import from_openapi


def a_schema(spec: dict, **rule) -> dict:
    return {
        "type": "object",
        "properties": {"spec": {**spec, **({"x-kubernetes-validations": [rule]} if rule else {})}},
    }


def refused(structural: dict, spec, old=None) -> list[tuple[str, str]]:
    rules = compile_rules(from_openapi(structural))
    assert rules is not None
    causes = rules.check({"spec": spec}, None if old is None else {"spec": old}, [])
    return [(found["field"], found["message"]) for found in causes]


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_cel_runtime_is_loaded_only_for_values_with_rules() -> None:
    code = (
        "import asyncio, sys\n"
        "from federation.api.crds import crd_manifests\n"
        "from federation.apimachinery.clock import SystemClock\n"
        "from federation.client.local import LocalClient\n"
        "from federation.api.resources import PROPAGATION_POLICIES\n"
        "from federation.apiserver.semantics.cel.rules import compile_rules\n"
        "from federation.apiserver.registry.registry import Registry\n"
        "from federation.apiserver.semantics.crd.structural import from_openapi\n"
        "from federation.apiserver.store.memory import MemoryStore\n"
        "assert compile_rules(from_openapi({'type': 'object', 'properties': {'a': {'type': 'string'}}})) is None\n"
        "is_loaded = lambda: any(name.startswith('cel_expr_python') for name in sys.modules)\n"
        "async def main():\n"
        "    registry = Registry(MemoryStore(), clock=SystemClock())\n"
        "    await registry.install_crds(crd_manifests())\n"
        "    create = lambda name, spec: LocalClient(registry).create(PROPAGATION_POLICIES,\n"
        "        {'metadata': {'name': name, 'namespace': 'default'}, 'spec': spec})\n"
        "    await create('plain', {'schedulingMode': 'Divide'})\n"
        "    assert not is_loaded()\n"
        "    spread = {'topologyKey': 'zone', 'maxSkew': 1, 'whenUnsatisfiable': 'DoNotSchedule'}\n"
        "    await create('spread', {'schedulingMode': 'Divide', 'topologySpread': [spread]})\n"
        "    assert is_loaded()\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"message": "too big"}, 'Invalid value: "object": too big'),
        ({}, 'Invalid value: "object": failed rule: self.a < 3'),
        ({"messageExpression": "'a is ' + string(self.a)", "message": "x"}, 'Invalid value: "object": a is 5'),
        ({"messageExpression": "self.nothing", "message": "fixed"}, 'Invalid value: "object": fixed'),
        ({"message": "no", "reason": "FieldValueForbidden"}, "Forbidden: no"),
        ({"message": "no", "reason": "FieldValueRequired"}, "Required value: no"),
        ({"message": "no", "reason": "FieldValueDuplicate"}, 'Duplicate value: "object"'),
    ],
    ids=["message", "no message", "expression", "broken expression", "forbidden", "required", "duplicate"],
)
def test_failed_rule_has_the_message_of_kubernetes(rule: dict, message: str) -> None:
    assert refused(a_schema(OPEN, rule="self.a < 3", **rule), {"a": 5}) == [("spec", message)]


def test_field_path_is_appended_to_the_path_of_the_rule() -> None:
    schema = a_schema(OPEN, rule="self.a < 3", message="m", fieldPath=".a.b")
    assert refused(schema, {"a": 5})[0][0] == "spec.a.b"


def test_rule_that_fails_to_evaluate_refuses_the_object() -> None:
    assert "evaluating rule: self.a < 3" in refused(a_schema(OPEN, rule="self.a < 3"), {})[0][1]


def test_rule_at_the_root_has_no_path() -> None:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name == 'x'"}]}
    rules = compile_rules(from_openapi(schema))
    assert rules is not None
    (found,) = rules.check({"metadata": {"name": "y"}}, None, [])
    assert found["field"] == "<nil>"


def test_rules_run_on_items_and_map_values() -> None:
    item = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0", "message": "positive"}]}
    listed = a_schema({"type": "array", "items": item})
    mapped = a_schema({"type": "object", "additionalProperties": item})
    assert refused(listed, [1, 0]) == [("spec[1]", 'Invalid value: "integer": positive')]
    assert refused(mapped, {"a": 1, "b": -1}) == [("spec[b]", 'Invalid value: "integer": positive')]


def test_transition_rules_run_only_on_updates() -> None:
    schema = a_schema({"type": "string"}, rule="self == oldSelf", message="immutable")
    assert refused(schema, "a") == []
    assert refused(schema, "a", "a") == []
    assert refused(schema, "b", "a") == [("spec", 'Invalid value: "string": immutable')]


def test_transition_rules_correlate_items_of_a_list_map_by_key() -> None:
    fields = {"name": {"type": "string"}, "size": {"type": "integer"}}
    rule = {"rule": "self.size >= oldSelf.size", "message": "may not shrink"}
    items = {"type": "object", "properties": fields, "x-kubernetes-validations": [rule]}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    old, new = [{"name": "a", "size": 3}], [{"name": "b", "size": 1}, {"name": "a", "size": 2}]
    assert [field for field, _ in refused(a_schema({"type": "array", "items": items, **keyed}), new, old)] == [
        "spec[1]"
    ]
    assert refused(a_schema({"type": "array", "items": items}), new, old) == []


def test_optional_old_self_lets_the_rule_run_on_create() -> None:
    rule = "oldSelf.hasValue() ? oldSelf.value() <= self : self == 1"
    schema = a_schema({"type": "integer"}, rule=rule, optionalOldSelf=True)
    assert refused(schema, 1) == []
    assert len(refused(schema, 2)) == 1
    assert refused(schema, 2, 1) == []
    assert len(refused(schema, 1, 2)) == 1


def test_rules_do_not_run_for_unchanged_values() -> None:
    schema = a_schema(OPEN, rule="self.a < 3")
    assert refused(schema, {"a": 5}, {"a": 5}) == []
    assert len(refused(schema, {"a": 6}, {"a": 5})) == 1


def test_rules_see_escaped_names_and_converted_values() -> None:
    spec = {
        "type": "object",
        "properties": {
            "namespace": {"type": "string"},
            "a-b.c/d": {"type": "string"},
            "x__y": {"type": "string"},
            "share": {"type": "number"},
            "raw": {"type": "string", "format": "byte"},
        },
    }
    rule = (
        "self.__namespace__ == 'n' && self.a__dash__b__dot__c__slash__d == 'v' && self.x__underscores__y == 'u'"
        " && self.share / 2.0 == 1.0 && self.raw == b'hi'"
    )
    value = {"namespace": "n", "a-b.c/d": "v", "x__y": "u", "share": 2, "raw": "aGk="}
    assert refused(a_schema(spec, rule=rule), value) == []


def test_rules_are_not_checked_for_an_object_that_fails_its_schema() -> None:
    rules = compile_rules(from_openapi(a_schema(OPEN, rule="self.a < 3")))
    assert rules is not None
    (found,) = rules.check({"spec": {}}, None, [{"reason": "FieldValueRequired", "message": "", "field": "spec.b"}])
    assert "some validation rules were not checked" in found["message"]


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"rule": "self.a <"}, "rule"),
        ({"rule": "nosuch(self)"}, "rule"),
        ({"rule": "'text'"}, "rule"),
        ({"rule": "true", "messageExpression": "1"}, "messageExpression"),
    ],
    ids=["syntax", "unknown function", "no bool", "message is no text"],
)
def test_crd_with_an_invalid_rule_is_refused(rule: dict, field: str) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "array", "items": {**OPEN, "x-kubernetes-validations": [rule]}}},
    }
    (found,) = validate_rules(schema, "spec.schema")
    assert found["field"] == f"spec.schema.properties[spec].items.x-kubernetes-validations[0].{field}"


def test_stored_crd_with_a_broken_rule_refuses_objects() -> None:
    assert "compilation failed" in refused(a_schema(OPEN, rule="self.a <"), {"a": 1})[0][1]


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2, 2].isSorted() && ![2, 1].isSorted() && ['a', 'b'].isSorted()",
        "[1, 2].sum() == 3 && [1, 2].min() == 1 && [1, 2].max() == 2 && [1.5].sum() == 1.5",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(5) == -1",
        "sets.contains([1, 2], [1]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 1], [1])",
        "'abc 123'.find('[0-9]+') == '123' && '1 2 3'.findAll('[0-9]', 2) == ['1', '2'] && 'x'.find('y') == ''",
        "isQuantity('1Gi') && !isQuantity('one') && quantity('1Gi') == quantity('1024Mi')",
        "quantity('2').isGreaterThan(quantity('1500m')) && quantity('1').compareTo(quantity('2')) == -1",
        "quantity('1').add(quantity('1')).asInteger() == 2 && quantity('3').sub(1).sign() == 1",
        "quantity('1500m').asApproximateFloat() == 1.5 && !quantity('1500m').isInteger()",
        "isURL('https://a.b:80/c') && !isURL('a b') && url('https://a.b:80/c?d=e').getHostname() == 'a.b'",
        "url('https://a.b:80/c?d=e').getPort() == '80' && url('https://a.b/c?d=e').getQuery()['d'] == ['e']",
        "isIP('::1') && !isIP('1.2.3') && ip('127.0.0.1').isLoopback() && ip('::1').family() == 6",
        "ip('8.8.8.8').isGlobalUnicast() && ip('224.0.0.1').isLinkLocalMulticast() && ip.isCanonical('::1')",
        "isCIDR('10.0.0.0/8') && cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isCIDR('10.0.0.0')",
        "cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16')) && cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')",
        "cidr('10.0.0.0/8').prefixLength() == 8 && cidr('10.0.0.1/8').ip() == ip('10.0.0.1')",
        "'a,b'.split(',').join('-') == 'a-b' && 'AB'.lowerAscii() == 'ab' && '%d'.format([3]) == '3'",
        "{'a': 1}.?b.orValue(2) == 2 && math.greatest(1, 2) == 2 && timestamp('2024-01-02T00:00:00Z').getFullYear() == 2024",
    ],
)
def test_functions_of_kubernetes_library_evaluate(expression: str) -> None:
    assert compile_expression(expression, (), returns="BOOL").evaluate({}) is True


def test_compile_and_evaluation_errors_have_their_own_classes() -> None:
    with pytest.raises(CompileError, match="undeclared reference"):
        compile_expression("other", ("self",))
    with pytest.raises(EvaluationError, match="Key not found"):
        compile_expression("self.a", ("self",)).evaluate({"self": {}})
    with pytest.raises(EvaluationError, match="no JSON form"):
        compile_expression("optional.none()", ()).evaluate({})
