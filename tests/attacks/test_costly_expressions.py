"""Expressions and schedules that tenants and administrators write cost a bounded time and memory, whatever they hold.

Before the budget, the first gate below took 1.4 GB and stopped the event loop for seconds at each change of an image.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.conformance.apiserver.objects import a_config_map
from tests.support.apiserver import api_server
from tests.support.cputime import cpu_s
from tests.support.rest import Api, Object, refused

from federation.admission.rolloutgates import compile_gate, gate_causes
from federation.admission.statusrules import compile_status_rule
from federation.api import names
from federation.apimachinery import cron
from federation.apiserver.semantics.cel.programs import OutOfBudget, compile_expression
from federation.apiserver.semantics.cel.rules import EVALUATIONS_MAX, compile_rules
from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.validation.devicevalidation import validate_claim
from federation.client.kubeconfig import load_kubeconfig
from federation.delivery.rules.adoption import AdoptionError, is_cluster_to_adopt
from federation.features.cronfederatedhpa.rules import due_rules
from federation.planning.aggregation.rules import RuleError

TENFOLD = ".map(a, a+a+a+a+a+a+a+a+a+a)"
DOUBLED = "a+a+a+a+a+a+a+a"
STALL_S_MAX = 0.1


def seconds(run: Callable[[], object]) -> float:
    return cpu_s(run, STALL_S_MAX)[1]


def test_a_gate_that_multiplies_a_text_is_refused_with_its_estimate() -> None:
    bomb = f"['{'x' * 1000}']{TENFOLD * 5}.size() == 1"
    ((found),) = gate_causes({"waves": [{"name": "a", "gate": {"expression": bomb}}]})
    assert found["field"] == "spec.rollout.waves[0].gate.expression"
    assert "estimated memory of " in found["message"]
    assert "exceeds the limit of 8388608 bytes" in found["message"]


@pytest.mark.parametrize(
    ("expression", "data"),
    [
        # Four doublings fit ordinary data, not an annotation of 256 KB.
        (f"[object.metadata.annotations.x].map(a, {DOUBLED}).map(a, {DOUBLED}).size() == 1", "x" * 256_000),
        ("object.spec.items.map(x, x > 0).size() == 1", [1] * 9_990),
        ("object.spec.items.exists(x, x.contains(object.metadata.annotations.x))", ["ab" * 20_000] * 100),
        ("object.spec.items.all(x, x in object.spec.items)", ["x" * 100] * 9_000),
        ("object.spec.items.all(x, object.spec.items.indexOf(x) >= 0)", ["x" * 10] * 3_000),
    ],
)
def test_a_gate_never_runs_for_data_that_make_it_costly(expression: str, data: Any) -> None:
    texts = {"x": data if isinstance(data, str) else "ab" * 20_000 + "c"}
    obj = {"metadata": {"annotations": texts}, "spec": {"items": data}, "kind": "Deployment"}
    gate = compile_gate(expression)
    gate_of_small = {"metadata": {"annotations": {"x": "x"}}, "spec": {"items": []}}
    assert gate(gate_of_small) in (True, False)

    def evaluate() -> None:
        with pytest.raises(RuleError, match=r"operation cancelled: estimated .* exceeds the limit of"):
            gate(obj)

    assert seconds(evaluate) < STALL_S_MAX


def test_a_status_rule_that_multiplies_is_refused() -> None:
    with pytest.raises(RuleError, match="exceeds the limit of 33554432 bytes"):
        compile_status_rule(f"[source.kind]{TENFOLD * 6}")


def test_shared_parts_that_multiply_when_they_are_compared_or_returned_are_counted() -> None:
    nested = "object"
    for level in range(9):
        nested = f"cel.bind(v{level}, {nested}, [{', '.join([f'v{level}'] * 8)}])"
    for expression in (f"{nested} == [{nested}]", nested):
        program = compile_expression(expression, ("object",))
        with pytest.raises(OutOfBudget):
            program.evaluate({"object": {"a": "b"}})


def a_policy(expression: str, **spec: Any) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "costly.example.com"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression}],
            **spec,
        },
    }


def a_webhook(expression: str) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "costly.example.com"},
        "webhooks": [
            {
                "name": "costly.example.com",
                "clientConfig": {"url": "https://webhook.example.com/"},
                "rules": [],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "matchConditions": [{"name": "costly", "expression": expression}],
            }
        ],
    }


def test_admission_refuses_costly_expressions_wherever_they_are_written(tmp_path: Any) -> None:
    bomb = f"['{'x' * 1000}']{TENFOLD * 5}.size() == 1"
    with api_server(tmp_path) as parts:
        api = Api(load_kubeconfig(parts.kubeconfig), "default")
        policies = "validatingadmissionpolicies"
        variables = [{"name": "x", "expression": f"['{'x' * 1000}']{TENFOLD * 3}"}]
        for plural, obj, field in (
            (policies, a_policy(bomb), "spec.validations[0].expression"),
            (policies, a_policy("true", matchConditions=[{"name": "x", "expression": bomb}]), "matchConditions[0]"),
            (policies, a_policy(f"variables.x{TENFOLD * 2}.size() == 1", variables=variables), "validations[0]"),
            ("validatingwebhookconfigurations", a_webhook(bomb), "webhooks[0].matchConditions[0].expression"),
        ):
            with refused(422, "Invalid", "exceeds the limit of 33554432 bytes") as error:
                api.create(plural, obj)
            assert field in error.value.message
        bind(api, a_policy("object.data.map(key, object.data[key]).size() < 9000"))
        with refused(422, "Invalid", "running out of cost budget"):
            api.create("configmaps", {**a_config_map("large"), "data": {f"k{index}": "v" for index in range(9_000)}})
        api.create("configmaps", a_config_map("small"))
        api.close()


def bind(api: Api, policy: Object) -> None:
    """Create a policy with a binding."""
    api.create("validatingadmissionpolicies", policy)
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "costly"},
        "spec": {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]},
    }
    api.create("validatingadmissionpolicybindings", binding)


def test_the_rules_of_a_custom_resource_end_after_a_number_of_evaluations() -> None:
    rule = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0"}]}
    listed = {"type": "object", "properties": {"items": {"type": "array", "items": rule}}}
    rules = compile_rules(from_openapi({"type": "object", "properties": {"spec": listed}}))
    assert rules is not None
    causes = rules.check({"spec": {"items": [1] * (20 * EVALUATIONS_MAX)}}, None, [])
    assert [found["message"].rpartition(": ")[2] for found in causes] == [
        "validation failed due to running out of cost budget, no further validation rules will be run"
    ]
    assert rules.check({"spec": {"items": [1] * EVALUATIONS_MAX}}, None, []) == []


def test_a_claim_with_thousands_of_expressions_is_refused_before_one_is_compiled() -> None:
    selectors = [{"cel": {"expression": f"device.driver == '{'x' * 10_000}'"}}] * 32
    requests = [{"name": f"r{index}", "exactly": {"selectors": selectors}} for index in range(32)]
    causes: list[Any] = []
    taken = seconds(lambda: causes.extend(validate_claim({"devices": {"requests": requests}}, "spec")))
    assert [found["field"] for found in causes] == ["spec.devices.requests"]
    assert taken < STALL_S_MAX


@pytest.mark.parametrize("regexp", [r"(\p{L}{1,100}){1,9}", "x" * 2_000])
def test_a_regular_expression_of_an_annotation_takes_little_memory(regexp: str) -> None:
    annotations = {names.CLUSTERS_TO_ADOPT: f'{{"regexp": "{regexp}"}}'.replace("\\", "\\\\")}
    with pytest.raises(AdoptionError):
        is_cluster_to_adopt(annotations, "cluster-1")


@pytest.mark.parametrize(
    "schedule", ["R * * * *", "R R(1-5) * * *", "H H * * *", ",".join(["0-59"] * 3000) + " * * * *"]
)
def test_random_and_endless_schedules_are_refused(schedule: str) -> None:
    with pytest.raises(ValueError, match=r"is no month|may have 256|a field has a character"):
        cron.next_time(schedule, datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("UTC"))


def test_the_missed_times_of_years_cost_as_much_as_one() -> None:
    spec = {"rules": [{"name": "often", "schedule": "* * * * *"}]}
    histories = [{"ruleName": "often", "nextExecutionTime": "1990-01-01T00:00:00Z"}]
    now = datetime(2026, 6, 1, 12, 30, 30, tzinfo=UTC)
    due: list[Any] = []
    taken = seconds(lambda: due.extend(due_rules(spec, histories, now)))
    assert [found.at for found in due] == [now.replace(second=0)]
    assert taken < STALL_S_MAX
