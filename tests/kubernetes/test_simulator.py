"""A simulated member writes what the controllers of Kubernetes write: the same manifests in both, the objects compared.

Values that differ by chance (times, uids, addresses, hashes, node names) are replaced; everything else must be equal.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.kubernetes.cluster import real_cluster
from tests.support.federation import free_clusters
from tests.support.rest import MERGE, Api, Object, eventually

from federation.client.kubeconfig import load_kubeconfig
from federation.simulator.controllers.names import SIMULATOR_EXIT_CODE

WAIT_S = 90.0
LABELS = {"app": "web"}
SERVICE: Object = {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Api]]:
    folder = tmp_path_factory.mktemp("simulator")
    with real_cluster(folder / "real") as real, free_clusters(folder / "simulated", 1) as kubeconfigs:
        apis = {"real": real.api(), "simulated": Api(load_kubeconfig(kubeconfigs[0]))}
        yield apis
        for api in apis.values():
            api.close()


@dataclass(frozen=True)
class Case:
    """Manifests by plural, what has to hold before the comparison, and what is compared."""

    name: str
    manifests: tuple[tuple[str, Object], ...]
    is_done: Callable[[Api], Any]
    compared: tuple[str, ...]
    """Plurals; every object of the namespace that the case made or that its controllers made."""
    change: Callable[[Api], Any] = lambda _: None
    """A step between the creation and the wait."""


def a_template(arguments: tuple[str, ...] = (), annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    container = {"name": "main", "image": "example.com/web:1", "args": list(arguments)}
    meta = {"labels": LABELS, **({"annotations": annotations} if annotations else {})}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def a_workload(**spec: Any) -> Object:
    return {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": a_template(), **spec},
    }


def a_job(code: int = 0, **spec: Any) -> Object:
    template = a_template((f"exit={code}",), {SIMULATOR_EXIT_CODE: str(code)}, restartPolicy="Never")
    return {"metadata": {"name": "web"}, "spec": {"template": template, **spec}}


def status(api: Api, plural: str) -> Object:
    return api.get(plural, "web").get("status") or {}


def counts(plural: str, **wanted: int) -> Callable[[Api], bool]:
    return lambda api: all(status(api, plural).get(key, 0) == value for key, value in wanted.items())


def has_condition(plural: str, type_: str) -> Callable[[Api], bool]:
    return lambda api: any(
        each["type"] == type_ and each["status"] == "True" for each in status(api, plural).get("conditions", ())
    )


def is_rolled_out(api: Api) -> bool:
    found = status(api, "statefulsets")
    return found.get("updatedReplicas") == found.get("readyReplicas") == 2 and found["observedGeneration"] == 2


def has_endpoints(api: Api) -> bool:
    slices = api.list("discovery.k8s.io/v1/endpointslices")["items"]
    ready = [e for each in slices for e in each.get("endpoints") or () if e["conditions"]["ready"]]
    return len(ready) == 2


def update_image(api: Api) -> None:
    eventually(lambda: counts("statefulsets", readyReplicas=2)(api), WAIT_S)
    template = a_template()
    template["spec"]["containers"][0]["image"] = "example.com/web:2"
    api.patch("statefulsets", "web", {"spec": {"template": template}}, type_=MERGE)


CLAIM: Object = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""},
}


def a_volume(number: int) -> Object:
    spec: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp"},  # never opened
        "persistentVolumeReclaimPolicy": "Retain",
    }
    return {"metadata": {"name": f"volume-{number}"}, "spec": spec}


CASES = (
    Case(
        "stateful-set",
        (("statefulsets", a_workload(replicas=2, serviceName="web", ordinals={"start": 3})),),
        is_rolled_out,
        ("statefulsets", "pods", "controllerrevisions"),
        update_image,
    ),
    Case(
        "stateful-set-with-claims",
        (
            *(("persistentvolumes", a_volume(number)) for number in (1, 2)),
            ("statefulsets", a_workload(replicas=2, serviceName="web", volumeClaimTemplates=[CLAIM])),
        ),
        counts("statefulsets", readyReplicas=2, availableReplicas=2),
        ("statefulsets", "pods", "persistentvolumeclaims"),
    ),
    Case(
        "daemon-set",
        (("daemonsets", a_workload()),),
        lambda api: status(api, "daemonsets").get("numberAvailable", 0) == len(api.list("nodes")["items"]),
        ("daemonsets", "controllerrevisions"),
    ),
    Case("job", (("jobs", a_job(completions=3, parallelism=2)),), has_condition("jobs", "Complete"), ("jobs", "pods")),
    Case(
        "indexed-job",
        (("jobs", a_job(completions=3, parallelism=3, completionMode="Indexed")),),
        has_condition("jobs", "Complete"),
        ("jobs", "pods"),
    ),
    Case("failing-job", (("jobs", a_job(1, backoffLimit=0)),), has_condition("jobs", "Failed"), ("jobs", "pods")),
    Case("suspended-job", (("jobs", a_job(suspend=True)),), has_condition("jobs", "Suspended"), ("jobs", "pods")),
    Case(
        "service",
        (("services", SERVICE), ("deployments", a_workload(replicas=2))),
        has_endpoints,
        ("discovery.k8s.io/v1/endpointslices",),
    ),
    Case(
        "budget",
        (
            ("deployments", a_workload(replicas=4)),
            (
                "poddisruptionbudgets",
                {"metadata": {"name": "web"}, "spec": {"maxUnavailable": "25%", "selector": {"matchLabels": LABELS}}},
            ),
        ),
        counts("poddisruptionbudgets", disruptionsAllowed=1, currentHealthy=4),
        ("poddisruptionbudgets",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_simulated_member_writes_what_kubernetes_writes(case: Case, both: dict[str, Api]) -> None:
    real, simulated = run(case, both["real"]), run(case, both["simulated"])
    assert [line for line in simulated if line not in real] == []
    assert [line for line in real if line not in simulated] == []


def run(case: Case, api: Api) -> list[str]:
    """Create the manifests in a namespace of their own, wait, and return what is compared, a line per field."""
    api.namespace = case.name
    api.create("namespaces", {"metadata": {"name": case.name}})
    if api.exists("clusterrolebindings", "system:controller:job-controller"):  # a real cluster: pods need an account
        eventually(lambda: api.exists("serviceaccounts", "default"), WAIT_S)
    for plural, manifest in case.manifests:
        api.create(plural, manifest)
    case.change(api)
    eventually(lambda: case.is_done(api), WAIT_S)
    nodes = len(api.list("nodes")["items"])
    found = {plural: api.list(plural)["items"] for plural in case.compared}
    for plural, manifest in case.manifests:
        if plural == "persistentvolumes":
            api.delete(plural, manifest["metadata"]["name"])
    api.delete("namespaces", case.name)
    groups = [
        (plural, sorted(list(lines(normalized(each, nodes))) for each in items)) for plural, items in found.items()
    ]
    return [
        f"{plural}/{number} {line}" for plural, group in groups for number, each in enumerate(group) for line in each
    ]


_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_HASH = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5,10}\b")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+")
_IGNORED = {
    "uid",
    "resourceVersion",
    "generation",
    "managedFields",
    "nodeName",
    "zone",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "controller-revision-hash",
    "controller.kubernetes.io/hash",
    "pod-template-hash",
    "generateName",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "deprecated.daemonset.template.generation",
    SIMULATOR_EXIT_CODE,
}
"""Fields that differ between any two clusters, the prefix of a generated name, which the simulator leaves out, and what
API servers add, not controllers: topology labels of pods and a DaemonSet's former field."""


def normalized(obj: Object, nodes: int) -> Object:
    """Return what the controllers decided about an object: its content without a user's spec and what kubelets write."""
    kept = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "spec", "data")}
    spec = obj.get("spec") or {}
    if "containers" in spec:
        kept = {"metadata": obj["metadata"], "spec": {key: spec.get(key) for key in ("hostname", "subdomain")}}
        kept["phase"] = obj["status"]["phase"]
        kept["claims"] = [v["persistentVolumeClaim"] for v in spec.get("volumes", ()) if "persistentVolumeClaim" in v]
        kept["env"] = spec["containers"][0].get("env")
    if "accessModes" in spec:  # a claim: an admission plugin of the API server protects it while pods use it
        kept["metadata"] = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
    if "currentNumberScheduled" in kept.get("status", {}):
        kept["status"] = {key: "each node" if value == nodes else value for key, value in kept["status"].items()}
    return kept


def lines(value: Any, path: str = "") -> Iterator[str]:
    """Yield `path = value` for every leaf, in the order of the paths."""
    if isinstance(value, dict):
        for key in sorted(value):
            if key not in _IGNORED:
                yield from lines(value[key], f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(sorted(value, key=str) if "endpoints" in path else value):
            yield from lines(inner, f"{path}[{number}]")
    elif value is not None:
        text = _HASH.sub("HASH", _TIMES.sub("TIME", _ADDRESS.sub("ADDRESS", str(value))))
        yield f"{path} = {text}"
