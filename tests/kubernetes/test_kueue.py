"""A real Kueue on a manager cluster lets us choose the worker, and in a worker or member it runs what arrives there.

For the manager there are three real clusters: the manager, which is our host, a worker with nodes and Kueue, and a worker
without nodes. Kueue runs there without its webhooks: jobs are created suspended, as its webhook would have them.
"""

import base64
import subprocess
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kubernetes.batchcontrollers import definitions, kueue_on
from tests.kubernetes.build import KUEUE as KUEUE_MODULE
from tests.kubernetes.build import CannotBuild, build_kueue
from tests.kubernetes.cluster import real_cluster
from tests.support.federation import Kubectl, eventually, fedctl, start_on_host, start_serve
from tests.support.manifests import a_policy

pytestmark = [pytest.mark.nightly, pytest.mark.slow("three real clusters and two controllers")]

KUEUE = "kueue.x-k8s.io/v1beta2"
WAIT_S = 90.0
Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def kueue() -> Path:
    try:
        return build_kueue()
    except CannotBuild as error:
        pytest.skip(str(error))


def of_kind(kind: str, name: str, namespace: str = "", **fields: Any) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": KUEUE, "kind": kind, "metadata": metadata | fields.pop("metadata", {}), **fields}


def queues(cores: str, *checks: str) -> list[Manifest]:
    """Return a flavour, a ClusterQueue with so many cores, and the LocalQueue `team`."""
    resources = [{"name": "cpu", "nominalQuota": cores}]
    spec: Manifest = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": resources}]}],
    }
    if checks:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in checks]}
    return [
        of_kind("ResourceFlavor", "default"),
        of_kind("ClusterQueue", "all", spec=spec),
        of_kind("LocalQueue", "team", "default", spec={"clusterQueue": "all"}),
    ]


def multi_kueue(*workers: str) -> list[Manifest]:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "fleet"}
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    label = {"labels": {"federation.kubeadmiral.io/dispatches": "true"}}
    secrets = [
        of_kind(
            "MultiKueueCluster",
            name,
            spec={"clusterSource": {"kubeConfig": {"location": f"{name}-kubeconfig", "locationType": "Secret"}}},
        )
        for name in workers
    ]
    return [
        *secrets,
        of_kind("MultiKueueConfig", "fleet", spec={"clusters": list(workers)}, metadata=label),
        of_kind("AdmissionCheck", "workers", spec=check),
    ]


def secret(name: str, kubeconfig: Path) -> Manifest:
    data = {"kubeconfig": base64.b64encode(kubeconfig.read_bytes()).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-kubeconfig", "namespace": "kueue-system"},
        "data": data,
    }


def a_job(name: str, pods: int, cpu: str) -> Manifest:
    container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "team"}},
        "spec": {
            "suspend": True,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def prepare(kubectl: Kubectl, *manifests: Manifest) -> None:
    """Install Kueue's kinds and these objects."""
    kubectl("create", "namespace", "kueue-system")
    kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(definitions(KUEUE_MODULE)))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    kubectl.apply(*manifests)


def workloads(kubectl: Kubectl) -> dict[str, Manifest]:
    """Return the status of each Workload by the name of its job."""
    return {
        each["metadata"]["ownerReferences"][0]["name"]: each.get("status") or {}
        for each in kubectl.json("get", "workloads.kueue.x-k8s.io", "-n", "default")["items"]
        if each["metadata"].get("ownerReferences")
    }


def test_kueue_sends_jobs_where_we_nominate(tmp_path: Path, kueue: Path) -> None:
    if subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("no user namespaces: Kueue reads a certificate from a fixed path")
    with ExitStack() as stack:
        manager = stack.enter_context(real_cluster(tmp_path / "manager", controllers=False))
        busy = stack.enter_context(real_cluster(tmp_path / "busy"))
        empty = stack.enter_context(real_cluster(tmp_path / "empty", controllers=False))
        workers = {"busy": busy, "empty": empty}
        for worker in workers.values():
            prepare(worker.kubectl, *queues("100"))
        secrets = [secret(name, worker.kubeconfig) for name, worker in workers.items()]
        prepare(manager.kubectl, *secrets, *queues("1000", "workers"), *multi_kueue(*workers))
        dispatcher = {"multiKueue": {"dispatcherName": "federation.kubeadmiral.io/dispatcher"}}
        stack.enter_context(kueue_on(kueue, manager, **dispatcher))
        stack.enter_context(kueue_on(kueue, busy))
        host = stack.enter_context(closing(start_on_host(tmp_path / "host", manager.kubeconfig)))
        for name, worker in workers.items():
            fedctl(
                "join", name, "--kubeconfig", str(worker.kubeconfig), KUBECONFIG=str(manager.kubeconfig), timeout_s=90
            )

        manager.kubectl.apply(a_job("fits", 20, "2"), a_job("wide", 60, "2"))

        def events() -> str:
            return manager.kubectl("get", "events", "-n", "default", "-o", "jsonpath={.items[*].message}")

        def chosen() -> Any:
            status = workloads(manager.kubectl).get("fits", {})
            return status.get("clusterName"), status.get("nominatedClusterNames")

        try:
            eventually(chosen, lambda found: found == ("busy", None), timeout_s=WAIT_S, what="a worker for the job")

            def running() -> int:
                pods = busy.kubectl.json("get", "pods", "-n", "default")["items"]
                return sum(pod["status"].get("phase") in ("Running", "Succeeded") for pod in pods)

            eventually(running, lambda count: count == 20, timeout_s=WAIT_S, what="20 pods in the worker")
            # 120 cores fit on the nodes of the worker and not into its quota; the other worker has no nodes.
            eventually(events, lambda text: "100 of 120 cores free" in text, timeout_s=WAIT_S, what="the reason")
            assert workloads(manager.kubectl)["wide"].get("nominatedClusterNames") is None
            assert "wide" not in workloads(busy.kubectl)
            assert "wide" not in workloads(empty.kubectl)
        except AssertionError as error:
            error.add_note(
                manager.kubectl("get", "workloads.kueue.x-k8s.io,multikueueclusters,fcluster", "-A", "-o", "yaml")[
                    :20000
                ]
            )
            error.add_note((manager.directory / "kueue" / "env.log").read_text()[-6000:])
            error.add_note(host.log()[-3000:] if callable(host.log) else "")
            raise


def test_a_job_that_the_federation_delivers_runs_when_kueue_in_the_member_admits_it(
    tmp_path: Path, kueue: Path
) -> None:
    """Kueue's webhook suspends the member's Job, and Kueue resumes it: fields that the federation does not own."""
    if subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("no user namespaces: Kueue reads a certificate from a fixed path")
    with ExitStack() as stack:
        member = stack.enter_context(real_cluster(tmp_path / "member"))
        prepare(member.kubectl, *queues("10"))
        stack.enter_context(kueue_on(kueue, member, with_webhook=True))
        host = stack.enter_context(closing(start_serve(tmp_path / "host")))
        kubeconfig = str(host.kubectl.kubeconfig)
        fedctl("join", "member", "--kubeconfig", str(member.kubeconfig), KUBECONFIG=kubeconfig, timeout_s=90)
        policy = a_policy({}, name="jobs", resourceSelectors=[{"apiVersion": "batch/v1", "kind": "Job"}], placement=[])
        host.kubectl.apply(policy, a_delivered_job("fits", 4), a_delivered_job("large", 10))

        def conditions(name: str) -> list[str]:
            found = host.kubectl.json("get", f"job/{name}", "-n", "default").get("status") or {}
            return [each["type"] for each in found.get("conditions") or () if each["status"] == "True"]

        def in_member(name: str) -> Manifest:
            return member.kubectl.json("get", f"job/{name}", "-n", "default")

        try:
            eventually(lambda: conditions("fits"), lambda seen: "Complete" in seen, timeout_s=WAIT_S, what="its end")
            # 20 of 10 cores: it is in the member, where Kueue keeps it suspended, without pods.
            assert in_member("large")["spec"]["suspend"] is True
            assert "Complete" not in conditions("large")
            pods = member.kubectl.json("get", "pods", "-n", "default")["items"]
            assert len(pods) == 4
            member.kubectl.apply(*queues("100"))
            eventually(lambda: conditions("large"), lambda seen: "Complete" in seen, timeout_s=WAIT_S, what="its end")
            assert in_member("large")["spec"]["suspend"] is False
        except AssertionError as error:
            error.add_note(member.kubectl("get", "jobs,workloads.kueue.x-k8s.io", "-A", "-o", "yaml")[:20000])
            error.add_note((member.directory / "kueue" / "env.log").read_text()[-6000:])
            raise


def a_delivered_job(name: str, pods: int) -> Manifest:
    """Return a Job as a user of the federation writes it: with the queue, and nothing else of Kueue."""
    job = a_job(name, pods, "2")
    for field in ("suspend", "managedBy"):
        del job["spec"][field]
    return job
