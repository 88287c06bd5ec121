"""The generated CustomResourceDefinitions: current, structural, and saying what the product relies on."""

from collections.abc import Iterator
from typing import Any

import pytest
from tools.definitions import KINDS
from tools.generate_crds import main

from federation.api import resources
from federation.api.crds import crd_manifests
from federation.api.federatedtype import default_type_configs
from federation.api.kubefedkinds import FEDERATED_KINDS, REPLICA_PREFERENCES
from federation.api.v1alpha1.federatedtypeconfig import FederatedTypeConfig
from federation.api.v1alpha1.propagationpolicy import PropagationPolicy
from federation.apiserver.semantics.crd.crdvalidation import schemas_with_paths
from federation.apiserver.semantics.crd.schemavalidation import schema_checks
from federation.features.catalogue import FEATURES

CRDS = {crd["spec"]["names"]["kind"]: crd for crd in crd_manifests()}


def schema(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def at(kind: str, path: str) -> dict[str, Any]:
    node = schema(kind)
    for key in path.split("."):
        node = node["items"] if key == "[]" else node["properties"][key]
    return node


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    children = [*node.get("properties", {}).values(), node.get("items"), node.get("additionalProperties")]
    for child in children:
        if isinstance(child, dict):
            yield from nodes(child)


def test_the_committed_files_match_the_models() -> None:
    assert main(["--check"]) == 0


def test_every_kind_of_the_product_has_a_crd() -> None:
    ours = {
        value.kind
        for value in vars(resources).values()
        if isinstance(value, resources.Resource) and value.group in (resources.CORE_GROUP, resources.KRUISE_GROUP)
    }
    kubefed = {*FEDERATED_KINDS, REPLICA_PREFERENCES.kind}
    wings = {kind.DEFINITION.resource.kind for feature in FEATURES for kind in feature.kinds()}
    assert ours | kubefed | wings == set(CRDS)
    for kind in KINDS:
        resource, crd = kind.DEFINITION.resource, CRDS[kind.DEFINITION.resource.kind]
        assert crd["metadata"]["name"] == resource.group_resource
        assert crd["spec"]["scope"] == ("Namespaced" if resource.namespaced else "Cluster")


@pytest.mark.parametrize("kind", sorted(CRDS))
def test_schemas_are_valid_which_is_not_checked_when_they_are_installed(kind: str) -> None:
    for version, path in schemas_with_paths(CRDS[kind]["spec"]["versions"]):
        checks = list(schema_checks(version, path))
        assert len(checks) == 5
        assert [cause for check in checks for cause in check()] == []


@pytest.mark.parametrize("kind", sorted(CRDS))
def test_schemas_are_structural(kind: str) -> None:
    for node in nodes(schema(kind)):
        assert not {"$ref", "anyOf", "oneOf", "allOf", "title", "definitions"} & node.keys()
        is_open = node.get("x-kubernetes-preserve-unknown-fields") or node.get("x-kubernetes-int-or-string")
        assert "type" in node or is_open, node
        assert not ({"properties", "additionalProperties"} <= node.keys())
        assert "\n" not in node.get("description", "")


def test_bad_policies_are_refused_by_the_schema() -> None:
    assert at("PropagationPolicy", "spec")["required"] == ["schedulingMode"]
    assert at("PropagationPolicy", "spec.schedulingMode")["enum"] == ["Duplicate", "Divide"]
    assert at("PropagationPolicy", "spec.placement.[].preferences.weight")["minimum"] == 0
    assert at("PropagationPolicy", "spec.maxClusters")["minimum"] == 0
    assert at("PropagationPolicy", "metadata.name")["maxLength"] == 63
    overriders = "spec.overrideRules.[].overriders"
    assert at("OverridePolicy", f"{overriders}.jsonpatch.[].path")["pattern"] == "^/([^~]|~[01])*$"
    assert "move" not in at("OverridePolicy", f"{overriders}.jsonpatch.[].operator")["enum"]
    assert at("OverridePolicy", f"{overriders}.labels.[].operator")["enum"] == ["addIfAbsent", "overwrite", "delete"]


def test_defaults_are_those_of_kubeadmiral() -> None:
    policy = at("PropagationPolicy", "spec.reschedulePolicy")
    assert policy["default"] == {"rescheduleWhen": {"policyContentChanged": True}}
    assert policy["properties"]["replicaRescheduling"]["default"] == {}
    assert at("PropagationPolicy", "spec.autoMigration.when") | {"description": ""} == {
        "default": {"podUnschedulableFor": "1m"},
        "description": "",
        "minProperties": 1,
        "properties": {
            "podUnschedulableFor": {
                "description": "How long a Pod must have been unschedulable before its replica is moved to another "
                "cluster.",
                "format": "duration",
                "type": "string",
            }
        },
        "type": "object",
    }
    assert at("FederatedTypeConfig", "spec.statusAggregation")["default"] == {"enabled": True}
    assert at("SchedulerPluginWebhookConfiguration", "spec.httpTimeout")["default"] == "5s"


def test_what_may_hold_anything_keeps_unknown_fields() -> None:
    template = at("FederatedObject", "spec.template")
    assert (template["type"], template["x-kubernetes-preserve-unknown-fields"]) == ("object", True)
    assert at("CollectedStatus", "clusters.[].collectedFields")["x-kubernetes-preserve-unknown-fields"] is True
    assert at("FederatedCluster", "status.resources.available")["additionalProperties"]["x-kubernetes-int-or-string"]
    assert at("FederatedCluster", "status.conditions")["x-kubernetes-list-map-keys"] == ["type"]


def test_status_subresources_short_names_and_columns() -> None:
    assert CRDS["FederatedCluster"]["spec"]["names"]["shortNames"] == ["fcluster"]
    version = CRDS["FederatedCluster"]["spec"]["versions"][0]
    columns = " ".join(column["name"] for column in version["additionalPrinterColumns"])
    assert columns == "ready joined version region nodes cpu memory age"
    assert [kind for kind, crd in CRDS.items() if "federation" in crd["spec"]["names"].get("categories", ())] == [
        kind
        for kind, crd in CRDS.items()
        if crd["spec"]["group"] == "core.kubeadmiral.io" and not kind.endswith(("CollectedStatus", "PropagatedVersion"))
    ]
    assert version["subresources"] == {"status": {}}
    assert "subresources" not in CRDS["CollectedStatus"]["spec"]["versions"][0]


def test_the_models_read_manifests_and_refuse_unknown_fields() -> None:
    policy = PropagationPolicy.model_validate(
        {"metadata": {"name": "p", "namespace": "d"}, "spec": {"schedulingMode": "Divide", "maxClusters": 2}}
    )
    assert policy.spec.max_clusters == 2
    with pytest.raises(ValueError, match="schedulingMod"):
        PropagationPolicy.model_validate({"spec": {"schedulingMode": "Divide", "schedulingMod": "x"}})
    for config in default_type_configs():
        FederatedTypeConfig.model_validate(config)
