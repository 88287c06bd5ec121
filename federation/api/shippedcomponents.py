"""The components of well-known kinds, in the form of `spec.components` and `spec.gang` of a FederatedTypeConfig.

They hold for a kind whose configuration has no `components` of its own. Fields are those of the projects' own
CustomResourceDefinitions, checked against them and their samples by `tests/kubernetes/test_batch_kinds.py`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from federation.api.components import NO_COMPONENTS, Components, parse_components

_Entry = Mapping[str, Any]
_ONE = {"path": "replicas", "default": 1}
_TEMPLATE = ["template.spec"]


def _kubeflow(specs: str) -> dict[str, Any]:
    """Return the components of a training kind: one for each entry of a map, such as Master and Worker."""
    entry: _Entry = {"name": "replicas", "at": f"spec.{specs}", "each": True, "replicas": [_ONE], "podSpecs": _TEMPLATE}
    return {"components": [entry]}


def _ray(cluster: str) -> list[_Entry]:
    """Return the head and the worker groups of a Ray cluster; `cluster` is the path of its spec."""
    return [
        {"name": "head", "at": f"{cluster}.headGroupSpec", "podSpecs": _TEMPLATE},
        {
            "name": "workers",
            "at": f"{cluster}.workerGroupSpecs",
            "each": True,
            "namePath": "groupName",
            "when": {"path": "suspend", "values": ["", "False"]},
            "replicas": [
                {"path": "replicas", "default": 0, "atLeast": "minReplicas", "atMost": "maxReplicas"},
                {"path": "numOfHosts", "default": 1},
            ],
            "podSpecs": _TEMPLATE,
        },
    ]


_SUBMITTER: _Entry = {
    "name": "submitter",
    "at": "spec",
    "when": {"path": "submissionMode", "values": ["", "K8sJobMode"]},
    "podSpecs": ["submitterPodTemplate.spec"],
    "requests": [{"resource": "cpu", "default": "500m"}, {"resource": "memory", "default": "200Mi"}],
}


def _spark(role: str, replicas: list[_Entry]) -> _Entry:
    return {
        "name": role,
        "at": "spec",
        "replicas": replicas,
        "podSpecs": [f"{role}.template.spec", role],
        "requests": [
            {"resource": "cpu", "paths": [f"{role}.coreRequest", f"{role}.cores"], "default": "1"},
            {
                "resource": "memory",
                "paths": [f"{role}.memory"],
                "default": "1g",
                "format": "Java",
                "overhead": {"path": f"{role}.memoryOverhead", "percent": 10, "atLeast": "384Mi"},
            },
            {"resourcePath": f"{role}.gpu.name", "paths": [f"{role}.gpu.quantity"]},
        ],
    }


def _flink(role: str, replicas: list[_Entry], otherwise: list[_Entry]) -> _Entry:
    return {
        "name": role,
        "at": "spec",
        "replicas": replicas,
        "replicasOtherwise": otherwise,
        "podSpecs": [f"{role}.podTemplate.spec", "podTemplate.spec"],
        "requests": [
            {
                "resource": "cpu",
                "paths": [f"{role}.resource.cpu", f"{role}.resources.requests.cpu"],
                "default": "1",
            },
            {
                "resource": "memory",
                "paths": [f"{role}.resource.memory", f"{role}.resources.requests.memory"],
                "default": "1600m" if role == "jobManager" else "1728m",
                "format": "Java",
            },
        ],
    }


_SERVED = ("huggingface", "lightgbm", "model", "onnx", "paddle", "pmml", "pytorch", "sklearn", "tensorflow")
_SERVED_TOO = ("triton", "xgboost")


def _kserve(part: str, *containers: str) -> _Entry:
    return {
        "name": part,
        "at": f"spec.{part}",
        "replicas": [{"path": "minReplicas", "default": 1}],
        "podSpecs": ["."],
        "containers": list(containers),
    }


SHIPPED: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("batch", "Job"): {
        "components": [
            {
                "name": "pods",
                "at": "spec",
                "replicas": [{"path": "parallelism", "default": 1, "atMost": "completions"}],
                "podSpecs": _TEMPLATE,
            }
        ],
        "gang": {"start": "Together", "when": {"path": "spec.completionMode", "values": ["Indexed"]}},
    },
    ("jobset.x-k8s.io", "JobSet"): {
        "components": [
            {
                "name": "jobs",
                "at": "spec.replicatedJobs",
                "each": True,
                "namePath": "name",
                "replicas": [
                    _ONE,
                    {"path": "template.spec.parallelism", "default": 1, "atMost": "template.spec.completions"},
                ],
                "podSpecs": ["template.spec.template.spec"],
            }
        ]
    },
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): {
        "components": [
            {
                "name": "leaders",
                "at": "spec",
                "replicas": [_ONE],
                "podSpecs": ["leaderWorkerTemplate.leaderTemplate.spec", "leaderWorkerTemplate.workerTemplate.spec"],
            },
            {
                "name": "workers",
                "at": "spec",
                "replicas": [_ONE, {"path": "leaderWorkerTemplate.size", "default": 1, "less": 1}],
                "podSpecs": ["leaderWorkerTemplate.workerTemplate.spec"],
            },
        ],
        "gang": {"start": "Independently"},
    },
    ("ray.io", "RayCluster"): {"components": _ray("spec")},
    ("ray.io", "RayJob"): {"components": [*_ray("spec.rayClusterSpec"), _SUBMITTER]},
    ("ray.io", "RayService"): {"components": _ray("spec.rayClusterConfig")},
    ("kubeflow.org", "PyTorchJob"): _kubeflow("pytorchReplicaSpecs"),
    ("kubeflow.org", "TFJob"): _kubeflow("tfReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _kubeflow("mpiReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _kubeflow("xgbReplicaSpecs"),
    ("kubeflow.org", "PaddleJob"): _kubeflow("paddleReplicaSpecs"),
    ("kubeflow.org", "JAXJob"): _kubeflow("jaxReplicaSpecs"),
    ("trainer.kubeflow.org", "TrainJob"): {
        "components": [
            {
                "name": "nodes",
                "at": "spec.trainer",
                "replicas": [{"path": "numNodes", "default": 1}],
                "resources": ["resourcesPerNode"],
            }
        ]
    },
    ("sparkoperator.k8s.io", "SparkApplication"): {
        "components": [
            _spark("driver", []),
            {
                **_spark("executor", [{"path": "executor.instances"}]),
                "replicasOtherwise": [{"path": "dynamicAllocation.initialExecutors", "default": 1}],
            },
        ]
    },
    ("flink.apache.org", "FlinkDeployment"): {
        "components": [
            _flink("jobManager", [{"path": "jobManager.replicas", "default": 1}], []),
            _flink(
                "taskManager",
                [{"path": "taskManager.replicas"}],
                [
                    {
                        "path": "job.parallelism",
                        "default": 0,
                        "per": "/flinkConfiguration/taskmanager.numberOfTaskSlots",
                    }
                ],
            ),
        ]
    },
    ("batch.volcano.sh", "Job"): {
        "components": [
            {
                "name": "tasks",
                "at": "spec.tasks",
                "each": True,
                "namePath": "name",
                "replicas": [_ONE],
                "minReplicas": [{"path": "minAvailable"}],
                "podSpecs": _TEMPLATE,
            }
        ]
    },
    ("serving.kserve.io", "InferenceService"): {
        "components": [
            _kserve("predictor", *_SERVED, *_SERVED_TOO),
            _kserve("transformer"),
            _kserve("explainer", "art"),
        ],
        "gang": {"start": "Independently"},
    },
    ("argoproj.io", "Workflow"): {
        "components": [
            {
                "name": "steps",
                "at": "spec.templates",
                "each": True,
                "namePath": "name",
                "podSpecs": ["."],
                "containers": ["container", "script", "containerSet.containers", "sidecars"],
            }
        ],
        "gang": {"start": "InSequence"},
    },
}
"""By group and kind."""


@cache
def shipped_components(group: str, kind: str) -> Components:
    """Return the shipped components of a kind, none for another kind."""
    entry = SHIPPED.get((group, kind))
    return NO_COMPONENTS if entry is None else parse_components(entry["components"], entry.get("gang"))
