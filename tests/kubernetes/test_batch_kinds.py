"""The shipped components of kinds, checked against the definitions and samples of their own projects.

Both are read from a folder outside the repository (docs/testing.md): `crds/NAME.yaml` and `samples/NAME.yaml`, NAME
being that of the definition. A real API server accepts them, and the counted pods are those of the table below.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.cluster import Cluster, real_cluster
from tests.support.federation import eventually

from federation.api.components import to_path
from federation.api.federatedtype import FederatedType, from_config
from federation.api.shippedcomponents import SHIPPED
from federation.apimachinery.resources import Object
from federation.planning.typederivation import custom_config
from federation.scheduling.podrequest import counted_demand_of

FOLDER = Path(os.environ.get("FEDERATION_BATCH") or Path("~/.cache/federation/batch").expanduser())
FILES = sorted((FOLDER / "crds").glob("*.yaml"))
EXPECTED: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("FlinkDeployment", "basic-example"): {"jobManager": 1, "taskManager": 1},
    ("InferenceService", "tensorflow-gpu"): {"predictor": 1},
    ("JAXJob", "jaxjob-simple"): {"Worker": 2},
    ("Job", "test-job"): {"default-nginx": 6},
    ("Job", "lm-mpi-job"): {"mpimaster": 1, "mpiworker": 2},
    ("JobSet", "pytorch"): {"workers": 4},
    ("JobSet", "exclusive-placement"): {"workers": 9},
    ("JobSet", "network-jobset"): {"leader": 1, "workers": 2},
    ("LeaderWorkerSet", "leaderworkerset-sample"): {"leaders": 3, "workers": 9},
    ("LeaderWorkerSet", "vllm"): {"leaders": 2, "workers": 2},
    ("MPIJob", "tensorflow-mnist"): {"Launcher": 1, "Worker": 2},
    ("PaddleJob", "paddle-simple-cpu"): {"Worker": 2},
    ("PyTorchJob", "pytorch-simple"): {"Master": 1, "Worker": 1},
    ("RayCluster", "raycluster-complete"): {"head": 1, "small-group": 1},
    ("RayCluster", "raycluster-tpu-v4-multihost"): {"head": 1, "tpu-group": 2},
    ("RayCluster", "raycluster-autoscaler"): {"head": 1},
    ("RayJob", "rayjob-sample"): {"head": 1, "small-group": 1, "submitter": 1},
    ("RayJob", "rayjob-sidecar-mode"): {"head": 1, "small-group": 1},
    ("RayService", "rayservice-sample"): {"head": 1, "small-group": 1},
    ("SparkApplication", "spark-pi"): {"driver": 1, "executor": 1},
    ("SparkApplication", "spark-pi-dynamic-allocation"): {"driver": 1, "executor": 1},
    ("TFJob", "dist-mnist-for-e2e-test"): {"Chief": 1, "PS": 1, "Worker": 2},
    ("TrainJob", "multi-node-example"): {"nodes": 3},
    ("Workflow", "dag-diamond-"): {"echo": 1},
    ("XGBoostJob", "xgboost-dist-iris-test-train"): {"Master": 1, "Worker": 2},
}
pytestmark = [
    pytest.mark.skipif(not FILES, reason=f"no definitions in {FOLDER}"),
    pytest.mark.slow("definitions of some megabytes, read and applied"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with real_cluster(tmp_path_factory.mktemp("batch"), controllers=False) as running:
        yield running


def documents(path: Path) -> list[Object]:
    return [document for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader) if document]


def type_of(definition: Object, version: str) -> FederatedType:
    return from_config(custom_config(definition, version))


def schema_at(schema: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Return the schema of a field, {} where any field is allowed, None where there is none."""
    for key in path:
        if schema.get("x-kubernetes-preserve-unknown-fields") or not schema:
            return {}
        below = (schema.get("properties") or {}).get(key) or schema.get("additionalProperties")
        if not isinstance(below, Mapping):
            return None
        schema = below
    return schema


def paths_of(component: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of a component that are relative to it."""
    for factor in (*(component.get("replicas") or ()), *(component.get("replicasOtherwise") or ())):
        yield from (factor[key] for key in ("path", "per", "atLeast", "atMost") if key in factor)
    yield from (path for key in ("podSpecs", "containers", "resources") for path in component.get(key) or ())
    for request in component.get("requests") or ():
        yield from request.get("paths") or ()
        yield from (request[key] for key in ("resourcePath",) if key in request)
        yield from (path for path in ((request.get("overhead") or {}).get("path"),) if path)
    yield from (path for path in (component.get("namePath"), (component.get("when") or {}).get("path")) if path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_paths_of_the_table_are_fields_of_the_kind(path: Path) -> None:
    (definition,) = documents(path)
    group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
    (stored,) = (version for version in definition["spec"]["versions"] if version["storage"])
    schema = stored["schema"]["openAPIV3Schema"]
    missing = []
    for component in SHIPPED[group, kind]["components"]:
        at = schema_at(schema, to_path(component["at"]))
        if at is not None and component.get("each"):
            at = at.get("items") or at.get("additionalProperties") or {}
        if at is None:
            missing.append(component["at"])
        else:
            missing += [text for text in paths_of(component) if schema_at(at, to_path(text)) is None]
    assert not missing


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_samples_are_accepted_and_their_pods_are_counted(cluster: Cluster, path: Path, tmp_path: Path) -> None:
    (definition,) = documents(path)
    kubectl, kind = cluster.kubectl, definition["spec"]["names"]["kind"]
    kubectl("apply", "--server-side", "-f", str(path))
    samples = [each for each in documents(FOLDER / "samples" / path.name) if each.get("kind") == kind]
    names = {each["metadata"].get("name") or each["metadata"].get("generateName") for each in samples}
    counted = 0
    for number, sample in enumerate(samples):
        name = sample["metadata"].pop("name", None) or sample["metadata"].pop("generateName")
        sample["metadata"] = {"name": f"sample-{number}", "namespace": "default"}
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump(sample))

        def create(file: Path = file) -> Any:
            return kubectl.run("create", "-f", str(file), "-o", "yaml")

        def is_answered(seen: Any) -> bool:
            return not any(text in seen.stderr for text in ("NotFound", "no matches for kind", "could not find"))

        answer = eventually(create, is_answered, what="a served kind")
        assert answer.returncode == 0, answer.stderr
        stored = yaml.safe_load(answer.stdout)
        pods = counted_demand_of(stored, type_of(definition, stored["apiVersion"].rpartition("/")[2]))
        if (kind, name) in EXPECTED:
            assert {each.name: each.count for each in pods} == EXPECTED[kind, name]
            counted += 1
    assert counted, f"none of {names} is in the table"
