"""Devices of a real cluster: real controllers make the claims of pods, and the real scheduler allocates them.

The slices are written as a driver writes them; pods run on the fake kubelet.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster import real_cluster
from tests.kubernetes.members.federation import real_federation
from tests.support.devices import CLASS, DRIVER, LARGE, a_claim_template, a_device, a_slice, exactly
from tests.support.federation import eventually

from federation.planning.clusters.deviceinventory import class_resource

pytestmark = pytest.mark.slow("a real cluster of its own")

Manifest = dict[str, Any]
V1 = "resource.k8s.io/v1"
POLICY = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "gpus", "namespace": "default"},
    "spec": {"schedulingMode": "Divide", "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]},
}


def driver_objects() -> list[Manifest]:
    """Return a class, and slices with four large and one small GPU for each of two nodes."""
    slices = [
        a_slice(node, [*(a_device(f"{node}-{at}") for at in range(4)), a_device(f"{node}-small", "t4", "16Gi")])
        for node in ("node-1", "node-2")
    ]
    classes: Manifest = {"apiVersion": V1, "kind": "DeviceClass", **CLASS}
    return [classes, *({"apiVersion": V1, "kind": "ResourceSlice", **each} for each in slices)]


def deployment(name: str, replicas: int, template: str) -> Manifest:
    labels = {"app": name}
    container = {"name": "main", "image": "example.com/main:1", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "resourceClaims": claims}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def test_claims_are_counted_and_allocated_in_a_real_cluster(tmp_path: Path) -> None:
    with (
        real_cluster(tmp_path / "cluster") as cluster,
        real_federation(tmp_path, {"gpus": cluster}) as fed,
    ):
        cluster.kubectl.apply(*driver_objects())
        host = fed.kubectl
        host.apply(POLICY, a_claim_template("two", exactly(2, LARGE)), deployment("web", 3, "two"))

        def running() -> int:
            pods = cluster.kubectl.json("get", "pods", "-n", "default", "-l", "app=web")["items"]
            return sum(pod["status"].get("phase") == "Running" for pod in pods)

        def available() -> Any:
            status = host.json("get", "federatedclusters", "gpus")["status"]
            return status["resources"]["available"].get(class_resource(DRIVER))

        def allocated() -> list[str]:
            claims = cluster.kubectl.json("get", "resourceclaims", "-n", "default")["items"]
            found = (claim.get("status", {}).get("allocation", {}).get("devices", {}) for claim in claims)
            return sorted(device["device"] for devices in found for device in devices.get("results", []))

        eventually(running, lambda count: count == 3, what="3 pods with two GPUs each")
        assert len(set(allocated())) == 6
        assert not any("small" in name for name in allocated())
        eventually(available, lambda amount: amount == "4", what="two large and two small GPUs left")

        host.apply(a_claim_template("five", exactly(5, LARGE)), deployment("more", 1, "five"))

        def message() -> str:
            return fed.fedctl("why", "deployment/more", check=False)

        text = "needs 5 devices of class gpu.example.com with memory >= 40Gi on one node; cluster gpus has 4"
        eventually(message, lambda found: text in found, what="why")
        assert not cluster.kubectl.json("get", "deployments", "-n", "default", "-l", "app=more")["items"]
