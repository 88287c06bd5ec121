"""Gates of rollouts that cannot work are refused, with the field and the reason."""

from typing import Any

import pytest

from federation.admission.rolloutgates import compile_gate, gate_causes, kind_causes, objective_causes
from federation.planning.aggregation.rules import RuleError
from federation.planning.waves.metricsources import MetricSource, Template

NOT_GLOBAL = (
    "Invalid value: not a global unicast address; the administrator may allow its network with"
    " FEDERATION_GATE_ALLOWED_NETWORKS"
)


def causes(**gate: Any) -> list[tuple[str, str]]:
    return [(found["field"], found["message"]) for found in gate_causes({"waves": [{"name": "a"}, {"gate": gate}]})]


def test_an_expression_over_the_object_holds_or_does_not() -> None:
    holds = compile_gate("object.status.readyReplicas >= 2 && object.metadata.name == 'web'")
    assert holds({"metadata": {"name": "web"}, "status": {"readyReplicas": 2}}) is True
    assert holds({"metadata": {"name": "web"}, "status": {"readyReplicas": 1}}) is False
    with pytest.raises(RuleError, match="no such key: readyReplicas"):
        holds({"metadata": {"name": "web"}, "status": {}})


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("object.status.", "syntax error"),
        ("string(object.metadata.name)", "must evaluate to bool but got string"),
        ("1 + 1", "must evaluate to bool but got int"),
        ("self.replicas > 1", "undeclared reference"),
        ("[object.kind]" + ".map(a, a+a+a+a+a+a+a+a)" * 5 + ".size() == 1", "bytes exceeds the limit of 8388608 bytes"),
    ],
)
def test_an_expression_that_cannot_work_names_its_field(expression: str, problem: str) -> None:
    found = causes(expression=expression)
    ((field, message),) = found
    assert field == "spec.rollout.waves[1].gate.expression"
    assert problem.lower() in message.lower()


def test_a_dynamic_value_that_is_no_boolean_fails_when_it_is_evaluated() -> None:
    with pytest.raises(RuleError, match="must evaluate to bool"):
        compile_gate("object.metadata.name")({"metadata": {"name": "web"}})


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("https://slo.example.com/ok?x=1", True),
        ("http://10.0.0.5:8080/", False),
        ("http://127.0.0.1/", False),
        ("http://localhost:9090/", False),
        ("http://api.localhost/", False),
        ("http://169.254.169.254/latest/meta-data", False),
        ("http://[::1]/", False),
        ("http://[::ffff:127.0.0.1]/", False),
        ("http://[fe80::1%25eth0]/", False),
        ("http://0.0.0.0/", False),
        ("http://224.0.0.1/", False),
        ("http://host:99999/", False),
    ],
)
def test_addresses_of_the_control_plane_and_its_network_are_refused(url: str, is_allowed: bool) -> None:
    found = causes(http={"url": url})
    assert found == (
        []
        if is_allowed
        else [
            (
                "spec.rollout.waves[1].gate.http.url",
                NOT_GLOBAL,
            )
        ]
    )


def test_a_rollout_without_gates_has_no_errors() -> None:
    assert gate_causes({}) == []
    assert gate_causes({"waves": [{"name": "a", "gate": {"ready": True}}]}) == []


def test_waves_of_a_policy_that_selects_nothing_with_waves_name_the_field() -> None:
    config, daemons = ({"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "apps/v1", "kind": "DaemonSet"})
    (found,) = kind_causes({"rollout": {"waves": [{}]}, "resourceSelectors": [config]})
    assert found["field"] == "spec.rollout"
    kinds = "CloneSet, DaemonSet, Deployment, StatefulSet and custom resources that do not run to completion"
    text = f"waves are for {kinds}; the policy selects only ConfigMap; remove the field"
    assert text in found["message"]
    assert kind_causes({"rollout": {"waves": [{}]}, "resourceSelectors": [config, daemons]}) == []
    custom = {"apiVersion": "example.com/v1", "kind": "Queue"}
    assert kind_causes({"rollout": {"waves": [{}]}, "resourceSelectors": [custom]}) == []
    assert kind_causes({"rollout": {"waves": [{}]}}) == []
    assert kind_causes({"resourceSelectors": [config]}) == []


@pytest.mark.parametrize(
    ("objective", "namespace", "field", "message"),
    [
        ({"source": "main"}, "shop", "", ""),
        ({"source": "main", "template": "jobs"}, "shop", "", ""),
        ({"source": "bank"}, "", "", ""),
        ({"source": "bank"}, "shop", ".source", "no source of metrics for this namespace: choose one of main"),
        ({"source": "other"}, "", ".source", "no source of metrics for this namespace: choose one of bank, main"),
        ({"source": "main", "template": "x"}, "shop", ".template", "no template of source main: choose one of jobs"),
        ({"source": "bank", "template": "x"}, "bank", ".template", "no template of source bank: it has none"),
        (
            {"source": "main", "errors": {"bad": {"code": "5(("}}},
            "shop",
            ".errors.bad[code]",
            "is no regular expression",
        ),
        (
            {"source": "main", "latency": {"labels": {"a b": "x"}}},
            "shop",
            ".latency.labels[a b]",
            "must be a label's name",
        ),
    ],
)
def test_an_objective_that_nobody_can_measure_names_its_field(
    objective: dict[str, Any], namespace: str, field: str, message: str
) -> None:
    template = Template("$selector $window", "$selector $window")
    sources = {
        "main": MetricSource("https://main", templates={"jobs": template}),
        "bank": MetricSource("https://bank", namespaces=("bank",)),
    }
    found = objective_causes({"waves": [{"name": "a", "gate": {"objectives": [objective]}}]}, sources, namespace)
    if not field:
        assert found == []
        return
    ((cause),) = found
    assert cause["field"] == f"spec.rollout.waves[0].gate.objectives[0]{field}"
    assert message in cause["message"]


def test_without_a_list_no_source_exists() -> None:
    (found,) = objective_causes({"waves": [{"gate": {"objectives": [{"source": "main"}]}}]}, {}, "shop")
    assert found["message"].endswith("none is listed")
