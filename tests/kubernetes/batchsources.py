"""Copies the definitions and samples of `test_batch_kinds.py` from clones of the projects.

    .venv/bin/python -m tests.kubernetes.batchsources CLONES [FOLDER]

`CLONES/OWNER+NAME/repo`, or `CLONES/NAME`, is a clone of each project of the table. Nothing is downloaded.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

SOURCES: Mapping[str, tuple[str, str, str, tuple[str, ...]]] = {
    "flinkdeployments.flink.apache.org": (
        "apache/flink-kubernetes-operator",
        "6e9caeb48118",
        "helm/flink-kubernetes-operator/crds/flinkdeployments.flink.apache.org-v1.yml",
        ("examples/basic.yaml",),
    ),
    "inferenceservices.serving.kserve.io": (
        "kserve/kserve",
        "aaac4e294dae",
        "install/v0.20.0/kserve-crds.yaml",
        ("docs/samples/accelerators/tensorflow-gpu.yaml",),
    ),
    "jaxjobs.kubeflow.org": (
        "kubeflow/training-operator",
        "v1.9.0",
        "manifests/base/crds/kubeflow.org_jaxjobs.yaml",
        ("examples/jax/cpu-demo/demo.yaml",),
    ),
    "jobs.batch.volcano.sh": (
        "volcano-sh/volcano",
        "ed72c7c815a9",
        "installer/helm/chart/volcano/crd/bases/batch.volcano.sh_jobs.yaml",
        ("example/job.yaml", "example/integrations/mpi/mpi-example.yaml"),
    ),
    "jobsets.jobset.x-k8s.io": (
        "kubernetes-sigs/jobset",
        "08dfbdfd6827",
        "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
        (
            "site/static/examples/pytorch/cnn-mnist/mnist.yaml",
            "site/static/examples/simple/exclusive-placement.yaml",
            "site/static/examples/simple/jobset-with-network.yaml",
        ),
    ),
    "leaderworkersets.leaderworkerset.x-k8s.io": (
        "kubernetes-sigs/lws",
        "060ab4da17ee",
        "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
        ("config/samples/leaderworkerset_v1_leaderworkerset.yaml", "docs/examples/vllm/GPU/lws.yaml"),
    ),
    "mpijobs.kubeflow.org": (
        "kubeflow/mpi-operator",
        "caa3c47fc42e",
        "deploy/v2beta1/mpi-operator.yaml",
        ("examples/v2beta1/horovod/tensorflow-mnist.yaml",),
    ),
    "paddlejobs.kubeflow.org": (
        "kubeflow/training-operator",
        "v1.9.0",
        "manifests/base/crds/kubeflow.org_paddlejobs.yaml",
        ("examples/paddlepaddle/simple-cpu.yaml",),
    ),
    "pytorchjobs.kubeflow.org": (
        "kubeflow/training-operator",
        "v1.9.0",
        "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
        ("examples/pytorch/simple.yaml",),
    ),
    "rayclusters.ray.io": (
        "ray-project/kuberay",
        "feeaf72facab",
        "ray-operator/config/crd/bases/ray.io_rayclusters.yaml",
        (
            "ray-operator/config/samples/ray-cluster.autoscaler.yaml",
            "ray-operator/config/samples/ray-cluster.complete.yaml",
            "ray-operator/config/samples/ray-cluster.tpu-v4-multihost.yaml",
        ),
    ),
    "rayjobs.ray.io": (
        "ray-project/kuberay",
        "feeaf72facab",
        "ray-operator/config/crd/bases/ray.io_rayjobs.yaml",
        ("ray-operator/config/samples/ray-job.sample.yaml", "ray-operator/config/samples/ray-job.sidecar-mode.yaml"),
    ),
    "rayservices.ray.io": (
        "ray-project/kuberay",
        "feeaf72facab",
        "ray-operator/config/crd/bases/ray.io_rayservices.yaml",
        ("ray-operator/config/samples/ray-service.sample.yaml",),
    ),
    "sparkapplications.sparkoperator.k8s.io": (
        "kubeflow/spark-operator",
        "38082f3318e9",
        "charts/spark-operator-chart/crds/sparkoperator.k8s.io_sparkapplications.yaml",
        ("examples/spark-pi.yaml", "examples/spark-pi-dynamic-allocation.yaml"),
    ),
    "tfjobs.kubeflow.org": (
        "kubeflow/training-operator",
        "v1.9.0",
        "manifests/base/crds/kubeflow.org_tfjobs.yaml",
        ("examples/tensorflow/dist-mnist/tf_job_mnist.yaml",),
    ),
    "trainjobs.trainer.kubeflow.org": (
        "kubeflow/trainer",
        "8c0f5059bd51",
        "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml",
        ("examples/yaml/01-multi-node.yaml",),
    ),
    "workflows.argoproj.io": (
        "argoproj/argo-workflows",
        "f016ad89eb26",
        "manifests/base/crds/full/argoproj.io_workflows.yaml",
        ("examples/dag-diamond.yaml",),
    ),
    "xgboostjobs.kubeflow.org": (
        "kubeflow/training-operator",
        "v1.9.0",
        "manifests/base/crds/kubeflow.org_xgboostjobs.yaml",
        ("examples/xgboost/xgboostjob.yaml",),
    ),
}
"""By definition: the project, a version of it, the file of the definition, and those of the samples."""


def read(clones: Path, project: str, version: str, path: str) -> str:
    """Return a file of a project as it is in a version."""
    owner, _, name = project.partition("/")
    clone = clones / f"{owner}+{name}" / "repo"
    clone = clone if clone.exists() else clones / name
    return subprocess.run(
        ["git", "-C", clone, "show", f"{version}:{path}"], capture_output=True, check=True, text=True
    ).stdout


def copy(clones: Path, folder: Path) -> None:
    """Write the files that the test reads."""
    for kind in ("crds", "samples"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for name, (project, version, definition, samples) in SOURCES.items():
        found = yaml.load_all(read(clones, project, version, definition), Loader=yaml.CSafeLoader)
        [wanted] = [each for each in found if each and each["metadata"]["name"] == name]
        wanted.pop("status", None)
        (folder / "crds" / f"{name}.yaml").write_text(yaml.safe_dump(wanted))
        texts = [read(clones, project, version, path) for path in samples]
        (folder / "samples" / f"{name}.yaml").write_text("\n---\n".join(texts))


if __name__ == "__main__":
    default = Path("~/.cache/federation/batch").expanduser()
    copy(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else default)
