"""A user whose job waits: `fedctl queue`, `fedctl why` and kubectl say its position and what it lacks."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.scenarios.test_gangs import a_job, job_policy
from tests.scenarios.test_job_queues import a_cluster_queue, a_flavor, a_queue
from tests.support.federation import Federation, eventually, fedctl
from tests.support.shared import new_namespace

pytestmark = [pytest.mark.e2e, pytest.mark.slow("kubectl on a federation"), pytest.mark.xdist_group("shared")]
NAME = "waiting-users"


@pytest.fixture
def namespace(shared_federation: Federation) -> Iterator[str]:
    fed = shared_federation
    name = new_namespace(fed, "queues")
    flavor, queue = a_flavor(NAME), a_cluster_queue(NAME, cores="2", flavor=NAME)
    fed.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, (flavor, queue))))
    yield name
    fed.kubectl("delete", "clusterjobqueue", NAME)
    fed.kubectl("delete", "capacityflavor", NAME)


def test_commands_say_where_a_job_waits_and_for_what(shared_federation: Federation, namespace: str) -> None:
    fed, host = shared_federation, str(shared_federation.kubectl.kubeconfig)
    policy, queue = job_policy(), a_queue("team", NAME)
    policy["metadata"]["labels"] = {"division": "anyhow"}
    jobs = [a_job("first", pods=2, cpu="1"), a_job("second", pods=1, cpu="1"), a_job("huge", pods=3, cpu="1")]
    for job in jobs:
        job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    objects = (policy, queue, *jobs[:1])
    for each in (policy, queue, *jobs):
        each["metadata"]["namespace"] = namespace
    fed.kubectl("apply", "-n", namespace, "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))

    def status() -> dict[str, Any]:
        return fed.api(namespace).get("core.kubeadmiral.io/v1alpha1/jobqueues", "team").get("status") or {}

    eventually(status, lambda seen: seen.get("admitted") == 1)
    fed.kubectl("apply", "-n", namespace, "-f", "-", stdin="\n---\n".join(map(json.dumps, jobs[1:])))
    eventually(status, lambda seen: len(seen.get("waiting") or ()) == 2)

    listed = fedctl("queue", "-n", namespace, "--kubeconfig", host).stdout
    waiting = fedctl("queue", "team", "-n", namespace, "--kubeconfig", host).stdout
    why = fedctl("why", "job/second", "-n", namespace, "--kubeconfig", host).stdout
    columns = fed.kubectl("get", "jobqueues", "-n", namespace)

    def course() -> tuple[float, float]:
        found = fed.api().send("GET", "/federation/v1/queuehistory").json()["queues"][NAME]
        return found["used"][-1], found["pending"][-1]

    eventually(course, lambda seen: seen == (1.0, 2.0), what="the newest values of the queue's course")
    assert [line.split()[:5] for line in listed.splitlines()[1:]] == [[namespace, "team", NAME, "2", "1"]]
    assert f"needs 1 core, ClusterJobQueue {NAME} has 0 of flavor {NAME} free" in " ".join(waiting.split())
    assert f"needs 3 cores, ClusterJobQueue {NAME} can have at most 2 of flavor {NAME}" in " ".join(waiting.split())
    assert "of JobQueue team; needs 1 core" in " ".join(why.split())
    assert [line.split()[:4] for line in columns.splitlines()[1:]] == [["team", NAME, "2", "1"]]
