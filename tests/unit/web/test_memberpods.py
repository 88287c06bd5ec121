"""Pods of a workload in a member: who may see them, and what is shown of one."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, grant, rule, user, wait_allowed
from tests.unit.web.test_delivery import served

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, PODS
from federation.apiserver.auth.identity import Attributes, User
from federation.web.memberpods import pod_row

URL = "/federation/v1/pods?group=apps&kind=Deployment&namespace=default&name=web&cluster=east"


async def test_pods_need_permission_for_the_workload_and_for_pods(tmp_path: Path) -> None:
    async with a_world(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=1))
        await world.settle()
        selector = a_deployment("web")["spec"]["selector"]["matchLabels"]
        spec = {"containers": [{"name": "a", "image": "i", "env": [{"name": "PASSWORD", "value": "topsecret"}]}]}
        for name, labels in (("web-1", selector), ("other-1", {"app": "other"})):
            await world.members["east"].admin.create(
                PODS, {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}
            )
        async with served(world, tmp_path) as (parts, admin):
            answer = await admin.get(URL)
            assert answer.status_code == 200, answer.text
            assert "web-1" in [pod["name"] for pod in answer.json()["items"]]
            assert "other-1" not in answer.text
            assert "topsecret" not in answer.text
            for other in ("name=web&cluster=west", "name=none&cluster=east"):
                assert (await admin.get(URL.partition("name=web")[0] + other)).json()["items"] == []
            assert (await admin.get(f"{URL}&container=a")).status_code == 400
            await grant(admin, rule("get", "deployments", group="apps"), to=user("bob"))
            bob_user = User("bob", ("devs", "system:authenticated"))
            await wait_allowed(parts, bob_user, Attributes("get", "apps", "v1", "deployments", "", "default", "web"))
            async with connect(parts.app, BOB) as bob:
                assert (await bob.get(URL)).status_code == 403
                await grant(admin, rule("list", "pods"), to=user("bob"), name="pods")
                await wait_allowed(parts, bob_user, Attributes("list", "", "v1", "pods", namespace="default"))
                assert (await bob.get(URL)).status_code == 200
                assert (await bob.get(URL.replace("kind=Deployment", "kind=StatefulSet"))).status_code == 403


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        ({"status": {"phase": "Running"}}, "Running"),
        ({"status": {"phase": "Pending"}, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "Terminating"),
        (
            {"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}},
            "ImagePullBackOff",
        ),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, "Evicted"),
        (
            {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}},
            "Unschedulable",
        ),
        ({}, "Unknown"),
    ],
)
def test_the_status_of_a_pod_is_what_kubectl_shows(pod: dict[str, Any], status: str) -> None:
    assert pod_row({**pod, "metadata": {"name": "a", **pod.get("metadata", {})}})["status"] == status
