"""The pods of objects by component: the shipped table, and the rules that users may write themselves."""

from typing import Any

import pytest

from federation.api.components import parse_components
from federation.api.federatedtype import from_config
from federation.api.shippedcomponents import SHIPPED, shipped_components
from federation.api.v1alpha1.federatedtypeconfig import Component, KindGang
from federation.apimachinery.resources import Object
from federation.planning.components import COMPONENTS_MAX, ComponentError, is_gang, pods_of
from federation.scheduling.podrequest import demand_of, pods_per_replica, request_of

GIB = 2**30
MIB = 2**20


def a_pod(cpu: str = "1", memory: str = "1Gi", **more: Any) -> Object:
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}], **more}


def a_type(group: str, kind: str, **spec: Any) -> Any:
    source = {"group": group, "version": "v1", "kind": kind, "pluralName": f"{kind.lower()}s", "scope": "Namespaced"}
    return from_config({"metadata": {"name": "x"}, "spec": {"sourceType": source, **spec}})


def ray_cluster(workers: int, **group: Any) -> Object:
    group = {"groupName": "gpu", "replicas": workers, "minReplicas": 0, "template": {"spec": a_pod("8")}, **group}
    return {"headGroupSpec": {"template": {"spec": a_pod("4")}}, "workerGroupSpecs": [group]}


def replicas(**counts: int) -> Object:
    return {role: {"replicas": count, "template": {"spec": a_pod("2")}} for role, count in counts.items()}


SPARK = {
    "driver": {"cores": 1, "memory": "512m"},
    "executor": {"cores": 2, "instances": 3, "memory": "8g", "gpu": {"name": "nvidia.com/gpu", "quantity": 1}},
}
FLINK = {
    "flinkConfiguration": {"taskmanager.numberOfTaskSlots": "4"},
    "jobManager": {"resource": {"cpu": 0.5, "memory": "2048m"}},
    "taskManager": {"resource": {"cpu": 2, "memory": "4g"}},
    "job": {"parallelism": 9},
}
LEADER_WORKER = {
    "replicas": 2,
    "leaderWorkerTemplate": {"size": 4, "workerTemplate": {"spec": a_pod("2")}, "leaderTemplate": {"spec": a_pod("1")}},
}
CASES: dict[str, tuple[str, str, Object, dict[str, tuple[int, int]]]] = {
    # group, kind, spec, and by component the pods and the cpu of each in thousandths
    "JobSet": (
        "jobset.x-k8s.io",
        "JobSet",
        {
            "replicatedJobs": [
                {"name": "driver", "template": {"spec": {"template": {"spec": a_pod("1")}}}},
                {
                    "name": "workers",
                    "replicas": 3,
                    "template": {"spec": {"parallelism": 4, "completions": 2, "template": {"spec": a_pod("2")}}},
                },
            ]
        },
        {"driver": (1, 1000), "workers": (6, 2000)},
    ),
    "LeaderWorkerSet": (
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        LEADER_WORKER,
        {"leaders": (2, 1000), "workers": (6, 2000)},
    ),
    "RayCluster": ("ray.io", "RayCluster", ray_cluster(10), {"head": (1, 4000), "gpu": (10, 8000)}),
    "a RayCluster below its minimum": (
        "ray.io",
        "RayCluster",
        ray_cluster(0, minReplicas=2, numOfHosts=4),
        {"head": (1, 4000), "gpu": (8, 8000)},
    ),
    "a RayCluster with a suspended group": (
        "ray.io",
        "RayCluster",
        ray_cluster(3, suspend=True),
        {"head": (1, 4000)},
    ),
    "RayJob": (
        "ray.io",
        "RayJob",
        {"rayClusterSpec": ray_cluster(2)},
        {"head": (1, 4000), "gpu": (2, 8000), "submitter": (1, 500)},
    ),
    "a RayJob that submits over HTTP": (
        "ray.io",
        "RayJob",
        {"rayClusterSpec": ray_cluster(2), "submissionMode": "HTTPMode"},
        {"head": (1, 4000), "gpu": (2, 8000)},
    ),
    "a RayJob with a submitter of its own": (
        "ray.io",
        "RayJob",
        {"rayClusterSpec": ray_cluster(0), "submitterPodTemplate": {"spec": a_pod("3")}},
        {"head": (1, 4000), "submitter": (1, 3000)},
    ),
    "RayService": ("ray.io", "RayService", {"rayClusterConfig": ray_cluster(1)}, {"head": (1, 4000), "gpu": (1, 8000)}),
    "PyTorchJob": (
        "kubeflow.org",
        "PyTorchJob",
        {"pytorchReplicaSpecs": replicas(Master=1, Worker=7)},
        {"Master": (1, 2000), "Worker": (7, 2000)},
    ),
    "TFJob": (
        "kubeflow.org",
        "TFJob",
        {"tfReplicaSpecs": replicas(Chief=1, PS=2)},
        {"Chief": (1, 2000), "PS": (2, 2000)},
    ),
    "MPIJob": ("kubeflow.org", "MPIJob", {"mpiReplicaSpecs": replicas(Launcher=1)}, {"Launcher": (1, 2000)}),
    "XGBoostJob": ("kubeflow.org", "XGBoostJob", {"xgbReplicaSpecs": replicas(Master=1)}, {"Master": (1, 2000)}),
    "PaddleJob": ("kubeflow.org", "PaddleJob", {"paddleReplicaSpecs": replicas(Worker=2)}, {"Worker": (2, 2000)}),
    "JAXJob": ("kubeflow.org", "JAXJob", {"jaxReplicaSpecs": replicas(Worker=2)}, {"Worker": (2, 2000)}),
    "TrainJob": (
        "trainer.kubeflow.org",
        "TrainJob",
        {"trainer": {"numNodes": 3, "resourcesPerNode": {"requests": {"cpu": "6"}}}},
        {"nodes": (3, 6000)},
    ),
    "SparkApplication": (
        "sparkoperator.k8s.io",
        "SparkApplication",
        SPARK,
        {"driver": (1, 1000), "executor": (3, 2000)},
    ),
    "a SparkApplication with dynamic allocation": (
        "sparkoperator.k8s.io",
        "SparkApplication",
        {"driver": {}, "executor": {"coreRequest": "500m"}, "dynamicAllocation": {"initialExecutors": 5}},
        {"driver": (1, 1000), "executor": (5, 500)},
    ),
    "FlinkDeployment": (
        "flink.apache.org",
        "FlinkDeployment",
        FLINK,
        {"jobManager": (1, 500), "taskManager": (3, 2000)},
    ),
    "a Volcano Job": (
        "batch.volcano.sh",
        "Job",
        {"tasks": [{"name": "ps", "replicas": 2, "template": {"spec": a_pod("3")}}]},
        {"ps": (2, 3000)},
    ),
    "InferenceService": (
        "serving.kserve.io",
        "InferenceService",
        {"predictor": {"minReplicas": 2, "model": {"resources": {"requests": {"cpu": "4"}}}}},
        {"predictor": (2, 4000)},
    ),
    "a Workflow, of which the largest step counts": (
        "argoproj.io",
        "Workflow",
        {
            "templates": [
                {"name": "main", "steps": [[{"name": "a", "template": "small"}]]},
                {"name": "small", "container": {"resources": {"requests": {"cpu": "1"}}}},
                {"name": "big", "script": {"resources": {"requests": {"cpu": "16"}}}},
            ]
        },
        {"big": (1, 16000)},
    ),
    "Job": (
        "batch",
        "Job",
        {"parallelism": 9, "completions": 4, "template": {"spec": a_pod("2")}},
        {"pods": (4, 2000)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_shipped_rules_count_the_pods_of_each_kind(case: str) -> None:
    group, kind, spec, expected = CASES[case]
    pods = demand_of({"kind": kind, "spec": spec}, a_type(group, kind))
    assert {each.name: (each.count, dict(each.shape.request).get("cpu", 0)) for each in pods} == expected


def test_every_shipped_kind_has_a_case() -> None:
    assert {(group, kind) for group, kind, _, _ in CASES.values()} == set(SHIPPED)


@pytest.mark.parametrize(("group", "kind"), SHIPPED)
def test_a_shipped_entry_is_what_a_configuration_may_say(group: str, kind: str) -> None:
    entry = SHIPPED[group, kind]
    for component in entry["components"]:
        Component.model_validate(component)
    KindGang.model_validate(entry.get("gang") or {})
    assert parse_components(entry["components"], entry.get("gang")) == shipped_components(group, kind)


def test_memory_of_java_programs_has_their_suffixes_and_an_overhead() -> None:
    spark = demand_of({"spec": SPARK}, a_type("sparkoperator.k8s.io", "SparkApplication"))
    assert [dict(pods.shape.request)["memory"] for pods in spark] == [(512 + 384) * MIB, 8 * GIB * 110 // 100 + 1]
    assert dict(spark[1].shape.request)["nvidia.com/gpu"] == 1
    flink = demand_of({"spec": FLINK}, a_type("flink.apache.org", "FlinkDeployment"))
    assert [dict(pods.shape.request)["memory"] for pods in flink] == [2 * GIB, 4 * GIB]


def test_the_request_of_an_object_is_that_of_all_its_pods() -> None:
    ray, job = a_type("ray.io", "RayCluster"), {"spec": ray_cluster(10)}
    assert request_of(job, ray) == {"cpu": 84000, "memory": 11 * GIB}
    assert pods_per_replica(job, ray) == 11
    path = {"pathDefinition": {"replicasSpec": "spec.replicas"}}
    groups, spec = a_type("leaderworkerset.x-k8s.io", "LeaderWorkerSet", **path), {"spec": LEADER_WORKER}
    assert request_of(spec, groups) == {"cpu": 7000, "memory": 4 * GIB}, "of each of its two replicas"
    assert pods_per_replica(spec, groups) == 4


def test_a_configuration_replaces_the_shipped_components() -> None:
    own = {"name": "all", "at": "spec", "replicas": [{"path": "size"}], "podSpecs": ["pod"]}
    spec = {"spec": {"size": 3, "pod": a_pod("2"), **ray_cluster(5)}}
    (pods,) = demand_of(spec, a_type("ray.io", "RayCluster", components=[own]))
    assert (pods.name, pods.count) == ("all", 3)
    assert demand_of(spec, a_type("ray.io", "RayCluster", components=[])) == ()
    widget = a_type("example.com", "Widget", components=[own], gang={"start": "Independently"})
    assert demand_of(spec, widget)[0].count == 3
    assert not is_gang(spec, widget.components)
    assert is_gang(spec, a_type("example.com", "Widget", components=[own]).components)
    assert not is_gang(spec, a_type("ray.io", "RayCluster", gang={"start": "Independently"}).components)


@pytest.mark.parametrize(
    ("group", "kind", "spec", "expected"),
    [
        ("batch", "Job", {"completionMode": "Indexed"}, True),
        ("batch", "Job", {"completionMode": "NonIndexed"}, False),
        ("batch", "Job", {}, False),
        ("ray.io", "RayJob", {}, True),
        ("serving.kserve.io", "InferenceService", {}, False),
        ("argoproj.io", "Workflow", {}, False),
        ("apps", "Deployment", {}, False),
    ],
)
def test_the_kind_says_whether_its_objects_are_gangs(group: str, kind: str, spec: Object, expected: bool) -> None:
    components, template = a_type(group, kind).components, {"spec": spec}
    assert is_gang(template, components) is expected
    assert is_gang(template, components, "Always")
    assert not is_gang(template, components, "Never")


def test_a_minimum_is_what_must_run_at_the_same_time() -> None:
    task = {"name": "ps", "replicas": 5, "minAvailable": 2, "template": {"spec": a_pod()}}
    (pods,) = demand_of({"spec": {"tasks": [task]}}, a_type("batch.volcano.sh", "Job"))
    assert (pods.count, pods.least) == (5, 2)


def test_node_needs_of_each_component_are_its_own() -> None:
    gpu = a_pod(nodeSelector={"pool": "gpu"}, tolerations=[{"key": "gpu", "operator": "Exists"}])
    spec = ray_cluster(1, template={"spec": gpu})
    head, workers = demand_of({"spec": spec}, a_type("ray.io", "RayCluster"))
    assert head.shape.needs.selector == ()
    assert workers.shape.needs.selector == (("pool", "gpu"),)
    assert workers.shape.needs.tolerations[0].key == "gpu"


NONSENSE: list[Any] = [None, 1, "x", [], [1], {}, {"a": 1}, [{"template": 1}], {"spec": {"containers": "x"}}, True]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=repr)
@pytest.mark.parametrize(("group", "kind"), SHIPPED)
def test_what_a_schema_admits_in_the_wrong_place_counts_as_nothing(group: str, kind: str, nonsense: Any) -> None:
    _, _, spec, _ = next(case for case in CASES.values() if case[:2] == (group, kind))
    type_ = a_type(group, kind)
    for template in (
        {"spec": nonsense},
        {"spec": _with(spec, nonsense, depth=1)},
        {"spec": _with(spec, nonsense, depth=3)},
    ):
        for pods in demand_of(template, type_):
            assert pods.count >= pods.least >= 0


def _with(value: Any, nonsense: Any, depth: int) -> Any:
    if depth == 0:
        return nonsense
    if isinstance(value, dict):
        return {key: _with(part, nonsense, depth - 1) for key, part in value.items()}
    return [_with(part, nonsense, depth - 1) for part in value] if isinstance(value, list) else nonsense


def test_an_object_with_too_many_components_is_not_counted_in_part() -> None:
    job = {"name": "x", "template": {"spec": {"template": {"spec": a_pod()}}}}
    template = {"spec": {"replicatedJobs": [job] * (COMPONENTS_MAX + 1)}}
    with pytest.raises(ComponentError, match="more than 256 components"):
        pods_of(template, shipped_components("jobset.x-k8s.io", "JobSet"))
    assert len(
        pods_of({"spec": {"replicatedJobs": [job] * COMPONENTS_MAX}}, shipped_components("jobset.x-k8s.io", "JobSet"))
    )


def test_a_component_without_anything_about_its_pods_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spec.components\[0\]: Required value"):
        parse_components([{"name": "x", "at": "spec"}])


def test_a_component_without_containers_starts_no_pod() -> None:
    job = {"name": "a", "replicas": 2, "template": {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}}
    template = {"spec": {"replicatedJobs": [job]}}
    assert pods_of(template, shipped_components("jobset.x-k8s.io", "JobSet")) == ()
