"""A gang on a real Kubernetes with its scheduler: no pod while one has no room, and all pods at once when there is.

The definition of JobSet is a small one with its fields, and this test makes the Jobs that JobSet's controller makes for
an object of it; Job controller and scheduler are those of Kubernetes, the pods are run by the fake kubelet.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import RealFederation, apply, real_federation
from tests.scenarios.test_gangs import a_definition, everywhere
from tests.support.federation import eventually

from federation.apimachinery.resources import Resource

JOB_SETS = Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
REPLICAS, PODS, CPU = 2, 4, "8"


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    """A member of two nodes with 64 cores each."""
    with real_federation(tmp_path_factory.mktemp("gangs"), {"member-1": real[0]}) as running:
        apply(running.kubectl, a_definition(JOB_SETS))
        running.kubectl("create", "namespace", "work")
        kinds = [("batch/v1", "Job"), ("jobset.x-k8s.io/v1alpha2", "JobSet"), ("apps/v1", "Deployment")]
        policy = {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "batch", "namespace": "work"},
            "spec": {
                "schedulingMode": "Divide",
                "resourceSelectors": [{"apiVersion": version, "kind": kind} for version, kind in kinds],
            },
        }
        apply(running.kubectl, policy, everywhere())
        eventually(
            lambda: running.kubectl.json("get", "federatedclusters", "member-1").get("status") or {},
            lambda seen: any(kind["kind"] == "JobSet" for kind in seen.get("apiResourceTypes") or ()),
            timeout_s=60,
            what="a member that serves JobSets",
        )
        running.fedctl("join", "--update-credentials", "member-1", "--kubeconfig", str(real[0].kubeconfig))
        yield running


def a_pod(cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def a_job_spec() -> dict[str, Any]:
    return {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed", "template": a_pod(CPU)}


def pods_of(fed: RealFederation, gang: str) -> list[str]:
    """Return the phases of a gang's pods in the member."""
    found = fed.member("member-1").json("get", "pods", "-n", "work", "-l", f"gang={gang}")["items"]
    return sorted(str(pod["status"].get("phase")) for pod in found)


def start_jobs_of(fed: RealFederation, name: str) -> None:
    """Make the Jobs of a JobSet, as its controller does."""
    owner = fed.member("member-1").json("get", f"jobset/{name}", "-n", "work")
    reference = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": name,
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    for replicated in owner["spec"]["replicatedJobs"]:
        for number in range(replicated["replicas"]):
            spec = replicated["template"]["spec"]
            spec["template"]["metadata"] = {"labels": {"gang": name}}
            job = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec}
            metadata = {"name": f"{name}-{replicated['name']}-{number}", "namespace": "work"}
            apply(fed.member("member-1"), {**job, "metadata": {**metadata, "ownerReferences": [reference]}})


def test_a_job_set_is_in_no_member_while_one_of_its_pods_has_no_room_and_starts_whole(fed: RealFederation) -> None:
    # Two pods of 41 cores, which the scheduler spreads over the nodes, leave 23 on each: room for two pods of a gang.
    template = {**a_pod("41"), "metadata": {"labels": {"app": "blocker"}}}
    template["spec"] = {**template["spec"], "restartPolicy": "Always"}
    blocker = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "blocker", "namespace": "work"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "blocker"}}, "template": template},
    }
    apply(fed.kubectl, blocker)
    fed.kubectl("rollout", "status", "deploy/blocker", "-n", "work", "--timeout=60s")

    def free() -> int:
        status = fed.kubectl.json("get", "federatedclusters", "member-1")["status"]
        return int(status["resources"]["available"]["cpu"].removesuffix("m") or 0)

    eventually(free, lambda seen: seen in (46, 46_000), timeout_s=60, what="a report of the blocker")
    replicated = {"name": "workers", "replicas": REPLICAS, "template": {"spec": a_job_spec()}}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "work"},
        "spec": {"replicatedJobs": [replicated]},
    }
    apply(fed.kubectl, job_set)

    why = eventually(
        lambda: fed.fedctl("why", "jobset/train", "-n", "work"), lambda seen: "needs 64 cores" in seen, what="a reason"
    )
    assert "the largest of 1 cluster has" in why or "free" in why
    absent = fed.member("member-1")("get", "jobset/train", "-n", "work", "--ignore-not-found", "-o", "name")
    assert absent == ""

    fed.kubectl("delete", "deploy/blocker", "-n", "work")
    eventually(
        lambda: fed.member("member-1")("get", "jobset/train", "-n", "work", "--ignore-not-found", "-o", "name"),
        bool,
        timeout_s=90,
        what="the gang in the member",
    )
    start_jobs_of(fed, "train")

    eventually(
        lambda: pods_of(fed, "train"),
        lambda seen: len(seen) == REPLICAS * PODS and set(seen) <= {"Running", "Succeeded"},
        timeout_s=60,
        what="all pods of the gang",
    )
