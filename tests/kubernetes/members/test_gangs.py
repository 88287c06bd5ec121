"""A gang on a real Kubernetes with its scheduler: no pod while one has no room, and all pods at once when there is.

JobSet's controller is its own, built from its Go module, with its webhooks and its definition. Job controller and
scheduler are those of Kubernetes, the pods are run by the fake kubelet.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.kubernetes.batchcontrollers import definitions, job_set_on
from tests.kubernetes.build import JOB_SET, CannotBuild, build_job_set
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import RealFederation, apply, real_federation
from tests.scenarios.test_gangs import everywhere
from tests.support.federation import eventually

pytestmark = [pytest.mark.nightly, pytest.mark.slow("a controller of its own")]

REPLICAS, PODS, CPU = 2, 4, "8"


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    """A member of two nodes with 64 cores each, where JobSet's controller runs as soon as its definition arrived."""
    try:
        program = build_job_set()
    except CannotBuild as error:
        pytest.skip(str(error))
    with real_federation(tmp_path_factory.mktemp("gangs"), {"member-1": real[0]}) as running:
        text = yaml.safe_dump_all(definitions(JOB_SET))
        running.kubectl("apply", "--server-side", "-f", "-", stdin=text)  # too long for the annotation of a plain apply
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
        with job_set_on(program, real[0]):
            yield running


def a_pod(cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def a_job_spec() -> dict[str, Any]:
    return {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed", "template": a_pod(CPU)}


def pods_of(fed: RealFederation, gang: str) -> list[str]:
    """Return the phases of a gang's pods in the member."""
    selector = f"jobset.sigs.k8s.io/jobset-name={gang}"
    found = fed.member("member-1").json("get", "pods", "-n", "work", "-l", selector)["items"]
    return sorted(str(pod["status"].get("phase")) for pod in found)


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
    eventually(
        lambda: pods_of(fed, "train"),
        lambda seen: len(seen) == REPLICAS * PODS and set(seen) <= {"Running", "Succeeded"},
        timeout_s=60,
        what="all pods of the gang",
    )
    status = eventually(
        lambda: fed.kubectl.json("get", "jobset/train", "-n", "work").get("status") or {},
        lambda seen: seen.get("terminalState") == "Completed",
        timeout_s=60,
        what="the end of the JobSet on the host",
    )
    assert status["replicatedJobsStatus"][0]["succeeded"] == REPLICAS
