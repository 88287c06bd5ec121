"""KubeFed's manifests as native ones, and what they do not express."""

from typing import Any

import pytest
import yaml
from tests.support.vectors import ROOT

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.features.convert.rules.kubefed import convert

EXAMPLE = list(yaml.safe_load_all((ROOT / "examples" / "kubefed" / "web.yaml").read_text()))


def a_deployment(**spec: Any) -> Object:
    return {
        "apiVersion": "types.kubefed.io/v1beta1",
        "kind": "FederatedDeployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {"spec": {"replicas": 2}}, "placement": {"clusterSelector": {}}, **spec},
    }


def a_preference(**spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.kubefed.io/v1alpha1",
        "kind": "ReplicaSchedulingPreference",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetKind": "FederatedDeployment", "totalReplicas": 6, **spec},
    }


def notes(*manifests: Object) -> list[tuple[str, str]]:
    return [(note.field, note.message) for note in convert(manifests).notes]


def test_the_example_is_converted() -> None:
    conversion = convert(EXAMPLE)
    assert [(obj["kind"], obj["metadata"]["name"]) for obj in conversion.objects] == [
        ("Namespace", "shop"),
        ("Namespace", "shop"),
        ("PropagationPolicy", "settings-configmap"),
        ("OverridePolicy", "settings-configmap"),
        ("ConfigMap", "settings"),
        ("PropagationPolicy", "web-deployment"),
        ("OverridePolicy", "web-deployment"),
        ("Deployment", "web"),
    ]
    assert [(note.source, note.field) for note in conversion.notes] == [
        ("FederatedNamespace shop/shop", "spec.placement")
    ]
    assert conversion.objects[-1]["spec"]["replicas"] == 9


def test_other_spellings_that_are_published_are_converted() -> None:
    override = {"clusterName": "east", "clusterOverrides": [{"path": "spec.replicas", "value": 5}]}
    published = {**a_deployment(overrides=[override]), "apiVersion": "types.kubefed.k8s.io/v1beta1"}
    conversion = convert([published])
    assert [obj["kind"] for obj in conversion.objects] == ["PropagationPolicy", "OverridePolicy", "Deployment"]
    (rule,) = conversion.objects[1]["spec"]["overrideRules"]
    assert rule["overriders"]["jsonpatch"] == [{"path": "/spec/replicas", "operator": "replace", "value": 5}]


def test_other_manifests_stay_as_they_are() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    assert convert([service]).objects == [service]


@pytest.mark.parametrize(
    ("manifests", "field", "message"),
    [
        ([a_deployment(placement={})], "spec.placement", "names no cluster, so KubeFed places the object nowhere"),
        (
            [a_deployment(placement={"clusters": []})],
            "spec.placement.clusters",
            "is empty, so KubeFed places the object nowhere",
        ),
        (
            [a_deployment(placement={"clusters": [{"name": "a"}], "clusterSelector": {}})],
            "spec.placement.clusterSelector",
            "has no effect beside spec.placement.clusters",
        ),
        (
            [a_deployment(placement={"clusters": [{"name": "a"}]}), a_preference()],
            "spec.placement.clusters",
            "has no effect beside ReplicaSchedulingPreference shop/web",
        ),
        (
            [
                a_deployment(overrides=[{"clusterName": "a", "clusterOverrides": [{"path": "/spec/replicas"}]}]),
                a_preference(),
            ],
            "spec.overrides[0].clusterOverrides[0].path",
            "is left out: the ReplicaSchedulingPreference divides the replicas",
        ),
        (
            [a_deployment(template={"metadata": {"name": "web", "finalizers": ["x"]}})],
            "spec.template.metadata.finalizers",
            "has no counterpart and is left out",
        ),
        ([a_deployment(extra=1)], "spec.extra", "has no counterpart and is left out"),
        (
            [a_deployment(), a_preference(clusters={"a": {"wait": 1}})],
            "spec.clusters.a.wait",
            "has no counterpart and is left out",
        ),
        ([a_preference()], "spec.targetKind", "is left out: FederatedDeployment shop/web is not among the manifests"),
        (
            [{"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster", "metadata": {"name": "east"}}],
            "kind",
            "is left out: join the cluster with `fedctl join`",
        ),
        (
            [{"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedConfig"}],
            "kind",
            "is left out: it configures KubeFed",
        ),
    ],
)
def test_what_is_not_expressed_is_noted(manifests: list[Object], field: str, message: str) -> None:
    ((found, text),) = notes(*manifests)
    assert found == field
    assert text.startswith(message)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({**a_deployment(), "kind": "FederatedWidget"}, "FederatedWidget shop/web: kind: is not converted"),
        ({**a_deployment(), "spec": []}, "FederatedDeployment shop/web: spec: must be a mapping"),
        ({**a_deployment(), "metadata": {"name": "web"}}, "FederatedDeployment web: metadata.namespace: is missing"),
        ({**a_deployment(), "metadata": {"namespace": "shop"}}, "FederatedDeployment shop: metadata.name: is missing"),
        (a_deployment(placement={"clusters": {}}), "spec.placement.clusters: must be a list"),
        (a_deployment(placement={"clusters": [{}]}), r"spec.placement.clusters\[0\].name: is missing"),
        (
            a_deployment(placement={"clusterSelector": {"matchExpressions": [{"key": "a"}]}}),
            r"spec.placement.clusterSelector.matchExpressions\[0\].operator: is missing",
        ),
        (a_deployment(overrides=[{}]), r"spec.overrides\[0\].clusterName: is missing"),
        (
            a_deployment(overrides=[{"clusterName": "a", "clusterOverrides": [{"value": 5}]}]),
            r"spec.overrides\[0\].clusterOverrides\[0\].path: must be a JSON pointer",
        ),
        (a_preference(targetKind="Deployment"), "spec.targetKind: must be FederatedDeployment or FederatedReplicaSet"),
        (a_preference(totalReplicas=-1), "spec.totalReplicas: must be a number from 0"),
        (a_preference(totalReplicas="6"), "spec.totalReplicas: must be a whole number"),
        (a_preference(clusters={"a": 1}), "spec.clusters.a: must be a mapping"),
        ({**a_preference(), "kind": "Other"}, "kind: is unknown; only ReplicaSchedulingPreference is converted"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused_with_its_field(manifest: Object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        convert([manifest])
