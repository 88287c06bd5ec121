"""The JSON schemas of our kinds: current, and as strict as the API server about manifests."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.support.vectors import ROOT
from tools.generate_json_schemas import FOLDER, main

EXAMPLES = [
    pytest.param(document, id=f"{path.relative_to(ROOT)}-{document['metadata']['name']}")
    for path in sorted((ROOT / "examples").rglob("*.yaml"))
    for document in yaml.load_all(path.read_text(), yaml.CSafeLoader)
    if isinstance(document, dict) and (FOLDER / document.get("apiVersion", "v1").partition("/")[0]).is_dir()
]


def schema_of(document: dict[str, Any]) -> dict[str, Any]:
    group, _, version = document["apiVersion"].partition("/")
    path: Path = FOLDER / group / f"{document['kind'].lower()}_{version}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def problems(document: dict[str, Any]) -> list[str]:
    schema = schema_of(document)
    jsonschema.Draft202012Validator.check_schema(schema)
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(document)]


def test_the_committed_files_match_the_models() -> None:
    assert main(["--check"]) == 0


@pytest.mark.parametrize("document", EXAMPLES)
def test_the_examples_are_valid(document: dict[str, Any]) -> None:
    assert problems(document) == []


def policy(**spec: object) -> dict[str, Any]:
    metadata = {"name": "web", "labels": {"any": "label"}}
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": metadata,
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"maxCluster": 3}, "'maxCluster' was unexpected"),
        ({"maxClusters": "3"}, "'3' is not of type 'integer'"),
        ({"schedulingMode": "Share"}, "'Share' is not one of"),
    ],
)
def test_a_misspelled_field_a_wrong_type_and_a_wrong_value_are_errors(field: dict[str, Any], message: str) -> None:
    (problem,) = problems(policy(**{"schedulingMode": "Divide", **field}))
    assert message in problem


def test_the_metadata_of_objects_from_a_server_is_accepted() -> None:
    document = policy(schedulingMode="Divide")
    document["metadata"] |= {"uid": "u", "managedFields": [{}], "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert problems(document) == []
