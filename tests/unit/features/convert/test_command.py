"""`fedctl convert`: HorizontalPodAutoscalers of removed API versions, also that of document 001."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.vectors import ROOT, case_id, filled, load
from typer.testing import CliRunner

from federation.apimachinery.errors import ConfigurationError
from federation.cli.main import app
from federation.features.convert.command import convert

FILE = ROOT / "examples" / "seeds" / "001" / "autoscaler-v2beta1.yaml"
CASES = [
    case
    for case in load("seeds-001-workloadspread-uniteddeployment")
    if (case["input"].get("manifest") or {}).get("kind") == "HorizontalPodAutoscaler"
]


def converted(*files: str, text: str = "") -> list[Any]:
    done = CliRunner().invoke(app, ["convert", *files], input=text)
    if isinstance(done.exception, ConfigurationError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_an_autoscaler_of_the_document_is_accepted_and_converted(case: dict[str, Any]) -> None:
    manifest, expected = case["input"]["manifest"], filled(case["expected"])
    found = convert(manifest)
    assert found["apiVersion"] == "autoscaling/v2"
    metric = expected.get("equivalent_autoscaling_v2_metric")
    assert metric is None or found["spec"]["metrics"] == [metric]
    bounds = expected.get("bounds")
    assert bounds is None or [found["spec"].get("minReplicas"), found["spec"].get("maxReplicas")] == bounds
    assert found["spec"].get("scaleTargetRef") == (manifest.get("spec") or {}).get("scaleTargetRef")
    assert found["metadata"] == manifest["metadata"]


def test_the_document_has_such_a_case() -> None:
    assert CASES


def test_the_example_and_other_objects_are_printed() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"a": "1"}}
    first, second = converted(str(FILE), "-", text=yaml.safe_dump(other))
    assert first["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 2}
    assert second == other


def test_the_second_beta_has_the_fields_of_the_present_version() -> None:
    (original,) = converted(str(FILE))
    beta = {**original, "apiVersion": "autoscaling/v2beta2"}
    assert converted("-", text=yaml.safe_dump(beta)) == [original]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (
            {"type": "Pods", "pods": {"metricName": "p", "targetAverageValue": "2"}},
            {
                "type": "Pods",
                "pods": {"metric": {"name": "p"}, "target": {"type": "AverageValue", "averageValue": "2"}},
            },
        ),
        (
            {"type": "External", "external": {"metricName": "q", "targetValue": "5"}},
            {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "5"}}},
        ),
    ],
)
def test_other_metrics_are_converted(source: dict[str, Any], target: dict[str, Any]) -> None:
    manifest = {
        "apiVersion": "autoscaling/v2beta1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "metrics": [source]},
        "status": {"desiredReplicas": 1},
    }
    found = convert(manifest)
    assert found["spec"] == {"maxReplicas": 3, "metrics": [target]}
    assert "status" not in found


def test_what_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    manifest = {
        "apiVersion": "autoscaling/v2beta1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h"},
        "spec": {"metrics": ["cpu"]},
    }
    for text in (yaml.safe_dump(manifest), "a: ["):
        file = tmp_path / "bad.yaml"
        file.write_text(text)
        with pytest.raises(ConfigurationError, match=r"bad\.yaml"):
            converted(str(file))
    with pytest.raises(ConfigurationError, match="No such file"):
        converted(str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigurationError, match="standard input: a manifest is a mapping"):
        converted("-", text="- just\n- a list\n")
    done = CliRunner().invoke(app, ["convert"])
    assert done.exit_code == 2
    assert "give the manifests" in done.stderr


def test_differences_are_on_standard_error_and_strict_fails() -> None:
    manifest = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}], "activationPreference": "Lazy"},
    }
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [manifest]})
    lenient = CliRunner().invoke(app, ["convert", "-f", "-"], input=text)
    strict = CliRunner().invoke(app, ["convert", "-f", "-", "--strict"], input=text)
    assert (lenient.exit_code, strict.exit_code) == (0, 1)
    assert lenient.stdout == strict.stdout
    assert yaml.safe_load(lenient.stdout)["apiVersion"] == "core.kubeadmiral.io/v1alpha1"
    assert lenient.stderr.startswith("PropagationPolicy shop/web: spec.activationPreference: new")


def test_kubefeds_kinds_are_converted_too() -> None:
    template = {"data": {"a": "1"}}
    manifest = {
        "apiVersion": "types.kubefed.io/v1beta1",
        "kind": "FederatedConfigMap",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": template, "placement": {"clusters": [{"name": "east"}]}},
    }
    assert {each["kind"] for each in converted("-", text=yaml.safe_dump(manifest))} == {
        "ConfigMap",
        "PropagationPolicy",
    }
