"""The fleet of the pictures in docs/ui: ten simulated clusters and about a hundred objects in every state.

One cluster does not answer and another is drained. A rollout waits for approval and another is stuck, a deletion and a
change of a policy are held, jobs wait in a queue, and a member has changed a field. `tools/pictures.py` takes the
pictures. `.venv/bin/python -m tools.picturefleet DIR` runs the fleet alone, until it is interrupted.
"""

import json
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.federation import Federation, fedctl, start_federation

ROOT = Path(__file__).resolve().parents[1]
CORE = "core.kubeadmiral.io/v1alpha1"
REGIONS = ("eu-west",) * 4 + ("us-east",) * 3 + ("ap-south",) * 3
TEAMS = ("shop", "payments", "search", "media", "analytics")
APPS = ("web", "api", "worker", "cache", "cart", "mail", "index", "gateway")
QUEUE = "federation.kubeadmiral.io/queue-name"
DEPLOYMENTS = {"apiVersion": "apps/v1", "kind": "Deployment"}


@contextmanager
def running_fleet(directory: Path) -> Iterator[Federation]:
    """Run the fleet in a folder until the block ends, from the moment when everything on its pictures has begun."""
    running = start_federation(directory, members=len(REGIONS))
    try:
        prepare(running)
        yield running
    finally:
        running.close()


def prepare(running: Federation) -> None:
    """Apply what the fleet has, and bring it into trouble."""
    kubectl = running.kubectl
    for number, region in enumerate(REGIONS, 1):
        kubectl("label", f"federatedcluster/member-{number}", f"topology.kubernetes.io/region={region}", "--overwrite")
    kubectl("apply", *(f"-f{file}" for file in sorted((ROOT / "examples" / "quickstart").glob("*.yaml"))))
    kubectl.apply(*applications(), *rollouts(), *archive(), *freezes(), a_project())
    kubectl.apply(*queues())
    kubectl("create", "namespace", "settings")
    kubectl("apply", "-n", "settings", f"-f{ROOT / 'examples' / 'policy-changes' / 'settings.yaml'}")
    kubectl("rollout", "status", "deployment/nginx", "--timeout=90s")
    for name in ("checkout", "orders"):
        kubectl("wait", f"deployment/{name}", "-n", "waves", "--for=condition=Available", "--timeout=90s")
    kubectl("set", "image", "deployment/checkout", "checkout=registry.example/checkout:2", "-n", "waves")
    kubectl("set", "image", "deployment/orders", "orders=registry.invalid/orders:2", "-n", "waves")
    kubectl("delete", "pvc", "--all", "-n", "archive", "--wait=false")
    moved = json.dumps({"spec": {"placement": [{"cluster": "member-2"}]}})
    kubectl("-n", "settings", "patch", "propagationpolicy/settings", "--type=merge", "-p", moved)
    fedctl("drain", "member-9", "--kubeconfig", str(kubectl.kubeconfig), check=False)  # not all of it may leave
    fedctl("sim", "stop", "member-7", "--dir", str(running.directory))
    running.member("member-2")("scale", "deployment/nginx", "--replicas=5")
    kubectl("wait", "federatedrollout", "--all", "-n", "waves", "--for=jsonpath={.status.wave}=canary", "--timeout=90s")
    fedctl("rollout", "approve", "deploy/orders", "-n", "waves", "--kubeconfig", str(kubectl.kubeconfig))
    kubectl("wait", "federatedcluster/member-7", "--for=condition=Ready=Unknown", "--timeout=90s")


def a_namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def a_policy(name: str, namespace: str, mode: str, *kinds: Mapping[str, Any], **spec: object) -> dict[str, Any]:
    """Return a PropagationPolicy for some kinds."""
    whole = {"schedulingMode": mode, "resourceSelectors": list(kinds), **spec}
    named = {"name": name, "namespace": namespace}
    return {"apiVersion": CORE, "kind": "PropagationPolicy", "metadata": named, "spec": whole}


def a_deployment(name: str, namespace: str, replicas: int, cpu: str = "200m") -> dict[str, Any]:
    labels = {"app": name}
    requests = {"cpu": cpu, "memory": "128Mi"}
    container = {"name": name, "image": f"registry.example/{name}:1", "resources": {"requests": requests}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {**DEPLOYMENTS, "metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}


def applications() -> Iterator[dict[str, Any]]:
    """Yield eight applications of five teams; the index of analytics needs more CPU than any node has."""
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"part": "settings"}}}
    for number, team in enumerate(TEAMS):
        copies = [{"cluster": f"member-{1 + (number + step) % 10}"} for step in range(0, 8, 2)]
        yield a_namespace(team)
        yield a_policy("divide", team, "Divide", DEPLOYMENTS, maxClusters=4)
        yield a_policy("copy", team, "Duplicate", settings, {"apiVersion": "v1", "kind": "Service"}, placement=copies)
        for place, app in enumerate(APPS):
            cpu = "40" if (team, app) == ("analytics", "index") else "200m"
            yield a_deployment(app, team, 3 + (place * 3 + number) % 9, cpu)
            named = {"name": f"{app}-settings", "namespace": team, "labels": {"part": "settings"}}
            yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"color": "blue"}}
        for app in ("web", "api"):
            spec = {"selector": {"app": app}, "ports": [{"port": 80}]}
            yield {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app, "namespace": team}, "spec": spec}


def rollouts() -> Iterator[dict[str, Any]]:
    """Yield two applications that roll out in waves."""
    waves = [{"name": name, "clusters": [f"member-{n}"], "pause": True} for n, name in ((1, "canary"), (2, "second"))]
    places = [{"cluster": f"member-{n}", "preferences": {"weight": 1}} for n in (1, 2, 3, 5)]
    yield a_namespace("waves")
    yield a_policy("waves", "waves", "Divide", DEPLOYMENTS, placement=places, rollout={"waves": waves})
    yield a_deployment("checkout", "waves", 8)
    yield a_deployment("orders", "waves", 8)


def archive() -> Iterator[dict[str, Any]]:
    """Yield as many claims as the guard holds when they are deleted at once."""
    claims = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    yield a_namespace("archive")
    yield a_policy("claims", "archive", "Duplicate", claims, placement=[{"cluster": "member-1"}])
    for number in range(11):
        yield {**claims, "metadata": {"name": f"data-{number}", "namespace": "archive"}, "spec": spec}


def a_project() -> dict[str, Any]:
    """Return a project of one more team."""
    alice = {"kind": "ServiceAccount", "name": "alice", "namespace": "accounts"}
    spec = {
        "namespaces": ["checkout", "checkout-tests"],
        "clusters": {"names": ["member-1", "member-2"]},
        "members": [{"role": "edit", "subjects": [alice]}],
        "quota": {"perNamespace": {"cpu": "40"}},
    }
    return {"apiVersion": CORE, "kind": "Project", "metadata": {"name": "checkout"}, "spec": spec}


def freezes() -> Iterator[dict[str, Any]]:
    """Yield a freeze that holds and one that is over."""
    for name, reason, first, last in (
        ("night", "nobody is awake", 2026, 2040),
        ("sale", "a sale that is over", 2020, 2021),
    ):
        window = {"start": f"{first}-01-01T00:00:00Z", "end": f"{last}-01-01T00:00:00Z"}
        spec = {"reason": reason, "windows": [window], "namespaces": ["media"]}
        yield {"apiVersion": CORE, "kind": "ChangeFreeze", "metadata": {"name": name}, "spec": spec}


def queues() -> Iterator[dict[str, Any]]:
    """Yield a queue of a fleet's quota, and jobs of which the last ones wait."""
    flavor: dict[str, Any] = {"name": "any", "resources": [{"name": "cpu", "nominalQuota": 120}]}
    fleet: dict[str, Any] = {"cohort": "lab", "namespaceSelector": {"matchLabels": {}}, "flavors": [flavor]}
    team = {"clusterJobQueue": "research"}
    jobs = {"apiVersion": "batch/v1", "kind": "Job"}
    yield {"apiVersion": CORE, "kind": "CapacityFlavor", "metadata": {"name": "any"}, "spec": {}}
    yield {"apiVersion": CORE, "kind": "ClusterJobQueue", "metadata": {"name": "research"}, "spec": fleet}
    yield {"apiVersion": CORE, "kind": "JobQueue", "metadata": {"name": "team", "namespace": "default"}, "spec": team}
    yield a_policy("jobs", "default", "Duplicate", jobs, maxClusters=1)
    for number in range(1, 5):
        container = {"name": "train", "image": "train:1", "resources": {"requests": {"cpu": str(4 * number)}}}
        pod = {"restartPolicy": "Never", "containers": [container]}
        spec = {"parallelism": 3 * number, "completions": 3 * number, "template": {"spec": pod}}
        named = {"name": f"train-{number}", "namespace": "default", "labels": {QUEUE: "team"}}
        yield {**jobs, "metadata": named, "spec": spec}


def main(arguments: list[str]) -> int:
    """Run the fleet in a folder until a signal; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write("error: give the folder of the fleet\n")
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), running_fleet(Path(arguments[0])) as running:
        sys.stdout.write(f"{running.ready_line}\n")
        sys.stdout.flush()
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
