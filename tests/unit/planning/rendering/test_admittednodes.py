"""Labels and tolerations that the pods of an object get from the flavours of its queue."""

from copy import deepcopy
from typing import Any

import pytest
from tests.unit.planning.test_components import a_pod, a_type, ray_cluster

from federation.apimachinery import dotpaths
from federation.apimachinery.resources import Object
from federation.planning.rendering.admittednodes import QUEUE_NODES, PodNodes, has_own_pod_specs, with_admitted_nodes

TAINT = {"key": "gpu", "operator": "Exists"}
GIVEN = PodNodes({}, {"pool": "gpu"}, [TAINT])


def admitted(*nodes: PodNodes) -> Object:
    return {"metadata": {"annotations": {QUEUE_NODES.name: QUEUE_NODES.text(list(nodes))}}}


def an_object(group: str, kind: str, spec: Object) -> Object:
    return {"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}


def at(obj: Any, *keys: Any) -> Any:
    for key in keys:
        obj = obj[key] if isinstance(key, int) else dotpaths.get(obj, (key,))
    return obj


@pytest.mark.parametrize(
    ("group", "kind", "spec", "paths"),
    [
        pytest.param("batch", "Job", {"template": {"spec": a_pod()}}, [("spec", "template", "spec")], id="Job"),
        pytest.param(
            "ray.io",
            "RayCluster",
            ray_cluster(2),
            [
                ("spec", "headGroupSpec", "template", "spec"),
                ("spec", "workerGroupSpecs", 0, "template", "spec"),
            ],
            id="RayCluster",
        ),
        pytest.param(
            "kubeflow.org",
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": a_pod()}}}},
            [("spec", "pytorchReplicaSpecs", "Worker", "template", "spec")],
            id="PyTorchJob",
        ),
        pytest.param(
            "sparkoperator.k8s.io",
            "SparkApplication",
            {"driver": {"cores": 1}, "executor": {"cores": 2, "instances": 3}},
            [("spec", "driver"), ("spec", "executor")],
            id="SparkApplication: the roles themselves have the fields",
        ),
        pytest.param(
            "flink.apache.org",
            "FlinkDeployment",
            {"jobManager": {}, "taskManager": {}, "podTemplate": {"spec": {"tolerations": [TAINT]}}},
            [("spec", "podTemplate", "spec")],
            id="FlinkDeployment: one template for both, which has the toleration",
        ),
        pytest.param(
            "apps", "Deployment", {"template": {"spec": a_pod()}}, [("spec", "template", "spec")], id="no components"
        ),
    ],
)
def test_every_pod_spec_of_a_kind_gets_the_nodes(
    group: str, kind: str, spec: Object, paths: list[tuple[Any, ...]]
) -> None:
    template = an_object(group, kind, spec)
    before = deepcopy(template)

    changed = with_admitted_nodes(template, admitted(GIVEN), a_type(group, kind))

    for path in paths:
        assert at(changed, *path)["nodeSelector"] == {"pool": "gpu"}
        assert at(changed, *path)["tolerations"] == [TAINT]
    assert template == before, "the template is read-only"


def test_pods_with_another_selector_than_the_admitted_one_stay_as_they_are() -> None:
    template = an_object("batch", "Job", {"template": {"spec": a_pod(nodeSelector={"zone": 1})}})
    job = a_type("batch", "Job")

    assert with_admitted_nodes(template, admitted(GIVEN), job) == template
    changed = with_admitted_nodes(template, admitted(PodNodes({"zone": "1"}, {"pool": "gpu"})), job)
    assert at(changed, "spec", "template", "spec")["nodeSelector"] == {"zone": "1", "pool": "gpu"}
    assert with_admitted_nodes(template, {"metadata": {}}, job) is template


def test_an_object_without_any_pod_spec_has_no_place_for_nodes() -> None:
    train = an_object("trainer.kubeflow.org", "TrainJob", {"trainer": {"numNodes": 2}})
    assert not has_own_pod_specs(train, a_type("trainer.kubeflow.org", "TrainJob"))
    assert has_own_pod_specs(an_object("ray.io", "RayCluster", ray_cluster(1)), a_type("ray.io", "RayCluster"))
    assert not has_own_pod_specs({"apiVersion": "v1", "kind": "ConfigMap"}, a_type("", "ConfigMap"))
