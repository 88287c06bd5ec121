from typing import Any

import orjson
import pytest
from tests.unit.controllers.hosting import Host

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_CLUSTERS
from federation.apimachinery.errors import ConfigurationError
from federation.controllers.nsautoprop import controller
from federation.controllers.nsautoprop.controller import NamespaceOptions

GROUP = "core.kubeadmiral.io/v1alpha1"
IDLE = {names.IDLE_CONTROLLERS: names.OVERRIDE_CONTROLLER}
PENDING = orjson.dumps([[names.NSAUTOPROP_CONTROLLER]]).decode()


def a_namespace(name: str) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": "ClusterFederatedObject",
        "metadata": {"name": f"{name}-namespaces", "annotations": IDLE | {names.PENDING_CONTROLLERS: PENDING}},
        "spec": {"template": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}},
    }


async def add_cluster(host: Host, name: str) -> None:
    spec = {"apiEndpoint": "https://x", "secretRef": {"name": name}}
    cluster = {"apiVersion": GROUP, "kind": "FederatedCluster", "metadata": {"name": name}, "spec": spec}
    await host.user.create(FEDERATED_CLUSTERS, cluster)
    time = "2026-01-01T00:00:00Z"
    joined = {
        "type": "Joined",
        "status": "True",
        "reason": "r",
        "message": "m",
        "lastProbeTime": time,
        "lastTransitionTime": time,
    }
    await host.merge(FEDERATED_CLUSTERS, name, {"status": {"conditions": [joined]}}, subresource="status")


def placed(obj: dict[str, Any]) -> list[str]:
    return [reference["cluster"] for entry in obj["spec"].get("placements") or () for reference in entry["placement"]]


async def test_namespaces_are_placed_in_joining_clusters(host: Host) -> None:
    await host.federate("Namespace")
    await add_cluster(host, "m1")
    running = controller.NamespaceController(host.wired, options=NamespaceOptions(exclude_regexp="^private-"))
    host.start(running.run)
    for name in ("shop", "private-x", "kube-system"):
        await host.user.create(CLUSTER_FEDERATED_OBJECTS, a_namespace(name))
    shop = await host.find(CLUSTER_FEDERATED_OBJECTS, "shop-namespaces", where=placed)
    assert placed(shop) == ["m1"]
    assert shop["metadata"]["annotations"][names.PENDING_CONTROLLERS] == "[]"

    await add_cluster(host, "m2")
    await host.find(CLUSTER_FEDERATED_OBJECTS, "shop-namespaces", where=lambda obj: placed(obj) == ["m1", "m2"])
    await host.user.delete(FEDERATED_CLUSTERS, "m1")
    await host.find(CLUSTER_FEDERATED_OBJECTS, "shop-namespaces", where=lambda obj: placed(obj) == ["m2"])
    for name in ("private-x", "kube-system"):
        excluded = await host.find(
            CLUSTER_FEDERATED_OBJECTS,
            f"{name}-namespaces",
            where=lambda obj: obj["metadata"]["annotations"][names.PENDING_CONTROLLERS] == "[]",
        )
        assert not placed(excluded)
    await host.settle(running)
    writes = host.client.writes.copy()
    await host.settle(running)
    assert host.client.writes == writes


def test_a_broken_expression_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match=r"'\(' is not a regular expression"):
        NamespaceOptions(exclude_regexp="(").pattern()
