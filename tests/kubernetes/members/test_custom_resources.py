"""CustomResourceDefinitions and their objects in three real members."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import REGIONS, RealFederation, apply, real_federation
from tests.support.federation import eventually

GROUP = "members.example.com"
CORE = "core.kubeadmiral.io/v1alpha1"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "colour": {"type": "string", "default": "blue"},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
                    },
                },
            },
            "x-kubernetes-validations": [{"rule": "self.size < 100", "message": "too large"}],
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}", "labels": {"example": "widgets"}},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}
FEDERATED_TYPE = {
    "apiVersion": CORE,
    "kind": "FederatedTypeConfig",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "sourceType": {
            "group": GROUP,
            "version": "v1",
            "kind": "Widget",
            "pluralName": "widgets",
            "scope": "Namespaced",
        },
        "controllers": [["kubeadmiral.io/global-scheduler"], ["kubeadmiral.io/overridepolicy-controller"]],
        "statusCollection": {"enabled": True, "fields": ["status"]},
    },
}
POLICIES = (
    {
        "apiVersion": CORE,
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "definitions"},
        "spec": {
            "schedulingMode": "Duplicate",
            "resourceSelectors": [
                {
                    "apiVersion": "apiextensions.k8s.io/v1",
                    "kind": "CustomResourceDefinition",
                    "labelSelector": {"matchLabels": {"example": "widgets"}},
                }
            ],
        },
    },
    {
        "apiVersion": CORE,
        "kind": "PropagationPolicy",
        "metadata": {"name": "widgets", "namespace": "default"},
        "spec": {
            "schedulingMode": "Duplicate",
            "resourceSelectors": [{"apiVersion": f"{GROUP}/v1", "kind": "Widget"}],
        },
    },
    {
        "apiVersion": CORE,
        "kind": "OverridePolicy",
        "metadata": {"name": "widgets", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{"apiVersion": f"{GROUP}/v1", "kind": "Widget"}],
            "overrideRules": [
                {
                    "targetClusters": {"clusters": ["member-3"]},
                    "overriders": {"jsonpatch": [{"operator": "replace", "path": "/spec/size", "value": 9}]},
                }
            ],
        },
    },
)


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    """A federation that learns of Widgets after its members have joined: they need new rights."""
    members = dict(zip(REGIONS, real, strict=True))
    with real_federation(tmp_path_factory.mktemp("custom"), members) as running:
        apply(running.kubectl, DEFINITION)
        running.kubectl("wait", "--for=condition=Established", f"crd/widgets.{GROUP}", "--timeout=30s")
        apply(running.kubectl, *POLICIES, FEDERATED_TYPE)
        eventually(
            lambda: [authorized(running, name) for name in running.members],
            lambda seen: {reason for reason, _ in seen} == {"RightsMissing"},
            what="missing rights in every member",
        )
        _, message = authorized(running, "member-1")
        assert "widgets" in message, message
        for name, cluster in running.clusters.items():
            running.fedctl("join", "--update-credentials", name, "--kubeconfig", str(cluster.kubeconfig))
        yield running


def authorized(fed: RealFederation, name: str) -> tuple[str, str]:
    conditions = (fed.kubectl.json("get", "fcluster", name).get("status") or {}).get("conditions") or ()
    found = next((c for c in conditions if c["type"] == "Authorized"), {})
    return found.get("reason", ""), found.get("message", "")


def a_widget(name: str, size: int = 2) -> dict[str, Any]:
    spec = {"size": size, "parts": [{"name": "wheel"}, {"name": "axle", "count": 2}]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def in_members(fed: RealFederation, target: str, path: str) -> list[str]:
    output = ("--ignore-not-found", "-o", f"jsonpath={path}")
    return [fed.member(name).run("get", target, *output).stdout for name in fed.members]


def collected(fed: RealFederation, name: str) -> dict[str, Any]:
    """Return the statuses of an object that its CollectedStatus has, by member."""
    found = fed.kubectl("get", "collectedstatuses", name, "--ignore-not-found", "-o", "json")
    statuses = json.loads(found)["clusters"] if found else []
    return {each["cluster"]: (each.get("collectedFields") or {}).get("status") for each in statuses}


def test_the_definition_is_established_in_every_member(fed: RealFederation) -> None:
    path = "{.status.conditions[?(@.type=='Established')].status}"
    target = f"crd/widgets.{GROUP}"
    eventually(lambda: in_members(fed, target, path), lambda seen: seen == ["True"] * 3, what="Established")
    before = in_members(fed, target, "{.metadata.resourceVersion} {.metadata.generation}")
    fed.kubectl("annotate", "crd", f"widgets.{GROUP}", "note=seen")
    eventually(lambda: in_members(fed, target, "{.metadata.annotations.note}"), lambda seen: seen == ["seen"] * 3)
    after = in_members(fed, target, "{.metadata.generation}")
    assert after == [text.split()[1] for text in before], "what the member added to the definition is no drift"


def test_custom_objects_are_propagated_overridden_and_repaired(fed: RealFederation) -> None:
    apply(fed.kubectl, a_widget("one"))
    path = "{.spec.size} {.spec.colour} {.spec.parts[*].count}"
    wanted = ["2 blue 1 2", "2 blue 1 2", "9 blue 1 2"]
    eventually(lambda: in_members(fed, "widget/one", path), lambda seen: seen == wanted, what="the widget")
    member = fed.member("member-1")
    member("patch", "widget/one", "--type=merge", "-p", '{"spec": {"size": 50, "colour": "red"}}')
    eventually(lambda: in_members(fed, "widget/one", path), lambda seen: seen == wanted, what="the repair")
    member("delete", "widget/one")
    eventually(lambda: in_members(fed, "widget/one", path), lambda seen: seen == wanted, what="the new copy")


def test_the_status_that_a_members_operator_writes_stays_and_is_collected(fed: RealFederation) -> None:
    apply(fed.kubectl, a_widget("two"))
    eventually(lambda: in_members(fed, "widget/two", "{.spec.size}"), lambda seen: seen == ["2", "2", "9"])
    for name in fed.members:
        patch = json.dumps({"status": {"phase": "Made", "by": name}})
        fed.member(name)("patch", "widget/two", "--subresource=status", "--type=merge", "-p", patch)
    wanted = {name: {"phase": "Made", "by": name} for name in fed.members}
    eventually(lambda: collected(fed, f"two-widgets.{GROUP}"), lambda seen: seen == wanted, what="three statuses")
    fed.kubectl("patch", "widget/two", "--type=merge", "-p", '{"spec": {"colour": "green"}}')
    eventually(lambda: in_members(fed, "widget/two", "{.spec.colour}"), lambda seen: seen == ["green"] * 3)
    assert in_members(fed, "widget/two", "{.status.phase}") == ["Made"] * 3


def test_an_object_that_a_member_rejects_is_reported_with_the_members_reason(fed: RealFederation) -> None:
    """Only the override makes it invalid, and only in one member."""
    apply(fed.kubectl, a_widget("three"))
    fed.kubectl(
        *("patch", "op", "widgets", "--type=json", "-p"),
        '[{"op": "replace", "path": "/spec/overrideRules/0/overriders/jsonpatch/0/value", "value": 100}]',
    )
    try:
        messages = eventually(
            lambda: (
                fed.kubectl("get", "fo", f"three-widgets.{GROUP}", "-o", "yaml")
                + fed.kubectl("get", "events", "--field-selector", "involvedObject.name=three", "-o", "yaml")
            ),
            lambda seen: "too large" in seen,
            what="the message of the validation rule",
        )
        assert "member-3" in messages
        assert in_members(fed, "widget/three", "{.spec.size}")[:2] == ["2", "2"]
    finally:
        fed.kubectl(
            *("patch", "op", "widgets", "--type=json", "-p"),
            '[{"op": "replace", "path": "/spec/overrideRules/0/overriders/jsonpatch/0/value", "value": 9}]',
        )
    eventually(lambda: in_members(fed, "widget/three", "{.spec.size}"), lambda seen: seen == ["2", "2", "9"])


def test_deletion_removes_the_objects_and_the_definition(fed: RealFederation) -> None:
    apply(fed.kubectl, a_widget("four"))
    eventually(lambda: in_members(fed, "widget/four", "{.spec.size}"), lambda seen: seen == ["2", "2", "9"])
    fed.kubectl("delete", "widgets", "--all", "--timeout=30s")
    assert in_members(fed, "widgets", "{.items[*].metadata.name}") == ["", "", ""]
    fed.kubectl("delete", "crd", f"widgets.{GROUP}", "--timeout=30s")
    eventually(
        lambda: in_members(fed, f"crd/widgets.{GROUP}", "{.metadata.name}"),
        lambda seen: seen == ["", "", ""],
        what="no definition in the members",
    )
