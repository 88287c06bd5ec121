"""Custom resources with the real kubectl: defined, served, validated, scaled, explained, deleted."""

import json
from pathlib import Path

import pytest

from tests.support.definitions import a_large_definition, an_engine
from tests.support.kubectl import TIMEOUT_S, Kubectl

pytestmark = [pytest.mark.e2e, pytest.mark.real_time]


def test_custom_resources_are_defined_served_and_deleted(kubectl: Kubectl) -> None:
    definition = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [cronSpec]
            properties:
              cronSpec: {type: string, description: "When it runs."}
              replicas: {type: integer, minimum: 1, default: 1}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
    kubectl("apply", "-f", "-", stdin=definition)
    kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", f"--timeout={TIMEOUT_S}s")
    resource = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\nspec: {cronSpec: '* * *'}\n"
    assert kubectl("apply", "-f", "-", stdin=resource) == "crontab.stable.example.com/a created\n"
    assert kubectl("apply", "-f", "-", stdin=resource) == "crontab.stable.example.com/a unchanged\n"
    table = kubectl("get", "ct").splitlines()
    assert table[0].split() == ["NAME", "SPEC", "REPLICAS"]
    assert table[1].split() == ["a", "*", "*", "*", "1"]
    kubectl("scale", "ct", "a", "--replicas=3")
    assert kubectl.api.get("stable.example.com/v1/crontabs", "a")["spec"]["replicas"] == 3
    assert "When it runs." in kubectl("explain", "crontab.spec.cronSpec")
    assert "spec.replicas in body should be greater than or equal to 1" in kubectl.fails(
        "apply", "-f", "-", stdin=resource.replace("cronSpec:", "replicas: 0, cronSpec:")
    )
    assert 'unknown field "spec.nope"' in kubectl.fails(
        "apply", "-f", "-", stdin=resource.replace("cronSpec:", "nope: 0, cronSpec:")
    )
    assert "* * *" in kubectl("describe", "ct", "a")
    kubectl.run("delete", "crd", "crontabs.stable.example.com", f"--timeout={TIMEOUT_S}s")
    assert "NotFound" in kubectl.fails("get", "ct")


def test_a_definition_of_half_a_megabyte_is_applied(kubectl: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "definition.json"
    file.write_text(json.dumps(a_large_definition("big.example.com")))
    assert file.stat().st_size > 500_000
    assert kubectl("apply", "--server-side", "-f", str(file)).endswith("serverside-applied\n")
    kubectl("wait", "--for=condition=Established", "crd/engines.big.example.com", f"--timeout={TIMEOUT_S}s")
    assert kubectl("apply", "--server-side", "-f", str(file)).endswith("serverside-applied\n")
    assert "Too long: may not be more than 262144 bytes" in kubectl.fails("apply", "-f", str(file))
    explained = kubectl("explain", "engines", "--recursive")
    assert "topologySpreadConstraints" in explained
    assert "<IntOrString>" not in kubectl("explain", "engines.spec.mode")
    kubectl.api.create("big.example.com/v1/engines", an_engine("big.example.com"))
    assert kubectl("get", "eng", "--no-headers").split()[:2] == ["e", "Fast"]
    refusal = kubectl.fails("patch", "engine", "e", "--type=merge", "-p", '{"spec":{"mode":"Safe"}}')
    assert 'The Engine "e" is invalid: spec.mode: Invalid value: "object": mode is immutable' in refusal
    kubectl.api.delete("customresourcedefinitions", "engines.big.example.com")
