"""A tenant stays within the LimitRanges of its namespace: with real kubectl, real HTTP and another process's writes."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.support.apiserver import Parts, api_server
from tests.support.kubectl import DEPLOYMENT, Kubectl
from tests.support.rest import Api

from federation.client.kubeconfig import load_kubeconfig

LIMITS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "limits"},
    "spec": {
        "limits": [
            {"type": "Container", "max": {"cpu": "2"}, "defaultRequest": {"cpu": "100m"}},
            {"type": "Pod", "max": {"cpu": "3"}},
            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}},
        ]
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with api_server(tmp_path_factory.mktemp("limits")) as parts:
        yield parts


@pytest.fixture
def kubectl(server: Parts, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    with closing(Api(load_kubeconfig(server.kubeconfig))) as api:
        found = Kubectl.in_namespace_of(request.node.name, server, api)
        found.api.create("limitranges", LIMITS)
        yield found


def a_pod(name: str, *cpus: str) -> str:
    containers = [
        {"name": f"c{n}", "image": "a", **({"resources": {"limits": {"cpu": cpu}}} if cpu else {})}
        for n, cpu in enumerate(cpus)
    ]
    return json.dumps(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}
    )


def a_claim(storage: str) -> str:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return json.dumps({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec})


def test_pods_get_defaults_and_keep_the_limits(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=a_pod("fits", ""))
    pod = kubectl.json("get", "pod", "fits")
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "100m"}}
    assert pod["status"]["qosClass"] == "Burstable"
    assert "cpu request for container c0" in pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    said = kubectl.fails("create", "-f", "-", stdin=a_pod("big", "3"))
    assert 'pods "big" is forbidden: maximum cpu usage per Container is 2, but limit is 3' in said
    said = kubectl.fails("create", "-f", "-", stdin=a_pod("sum", "2", "2"))
    assert "maximum cpu usage per Pod is 3, but limit is 4" in said
    assert "forbidden" in kubectl.fails("create", "--dry-run=server", "-f", "-", stdin=a_pod("big", "3"))
    kubectl("label", "pod", "fits", "a=b")


def test_claims_keep_the_limits_and_templates_are_not_changed(kubectl: Kubectl) -> None:
    said = kubectl.fails("create", "-f", "-", stdin=a_claim("1Mi"))
    assert "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi" in said
    kubectl("create", "-f", "-", stdin=a_claim("2Gi"))
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    template = kubectl.json("get", "deployment", "web")["spec"]["template"]
    assert not template["spec"]["containers"][0].get("resources")


def test_a_deleted_limit_range_limits_nothing_and_costs_nothing(kubectl: Kubectl, server: Parts) -> None:
    assert "forbidden" in kubectl.fails("create", "-f", "-", stdin=a_pod("big", "3"))
    limits = {**LIMITS, "spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}}]}}
    kubectl("replace", "-f", "-", stdin=json.dumps(limits))
    kubectl("create", "-f", "-", stdin=a_pod("big", "3"))
    for found in kubectl.json("get", "limitranges", "-A")["items"]:
        kubectl.run("delete", "limitrange", "limits", "--namespace", found["metadata"]["namespace"])
    kubectl.run("delete", "limitrange", "limits")
    kubectl("create", "-f", "-", stdin=a_pod("bigger", "9"))
    admission = server.registry._context.admission
    assert admission is not None
    assert "pods" not in admission.guarded


def test_other_namespaces_are_not_limited(kubectl: Kubectl, server: Parts) -> None:
    other = Kubectl.in_namespace_of("somewhere_else", server, kubectl.api)
    other("create", "-f", "-", stdin=a_pod("big", "9"))
    assert "forbidden" in kubectl.fails("create", "-f", "-", stdin=a_pod("big", "9"))
