"""The objects of every API server: present after the start, unchanged by a restart, and never in members."""

import base64
import socket
from pathlib import Path
from typing import Any

from tests.support.federation import Kubectl, eventually, federation, start_serve

ROOT_CA, AUTHENTICATION = "kube-root-ca.crt", "extension-apiserver-authentication"


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def published(kubectl: Kubectl) -> dict[str, Any]:
    """Return the objects by kind and name, "" for those that are missing."""
    found = kubectl.json("get", "services,endpoints,endpointslices,configmaps", "-A")["items"]
    wanted = {"kubernetes", ROOT_CA, AUTHENTICATION}
    return {
        f"{obj['kind']} {obj['metadata']['namespace']}/{obj['metadata']['name']}": obj
        for obj in found
        if obj["metadata"]["name"] in wanted
    }


def wait_published(kubectl: Kubectl) -> dict[str, Any]:
    names = {
        *(f"{kind} default/kubernetes" for kind in ("Service", "Endpoints", "EndpointSlice")),
        *(f"ConfigMap {name}/{ROOT_CA}" for name in ("default", "kube-system", "kube-public", "kube-node-lease")),
        f"ConfigMap kube-system/{AUTHENTICATION}",
    }
    return eventually(lambda: published(kubectl), lambda seen: names <= seen.keys(), what="system objects")


def test_a_restart_does_not_write_the_system_objects_again(tmp_path: Path) -> None:
    arguments = ["--port", str(free_port()), "--advertise-address", "192.0.2.7"]
    running = start_serve(tmp_path / "host", arguments=arguments)
    before = wait_published(running.kubectl)
    config = running.kubectl.json("config", "view", "--raw")["clusters"][0]["cluster"]
    authority = base64.b64decode(config["certificate-authority-data"]).decode()
    assert before["ConfigMap default/kube-root-ca.crt"]["data"] == {"ca.crt": authority}
    authentication = before[f"ConfigMap kube-system/{AUTHENTICATION}"]["data"]
    assert authentication["client-ca-file"] == authority
    assert authentication["requestheader-client-ca-file"] not in {"", authority}
    port = {"name": "https", "port": int(arguments[1]), "protocol": "TCP"}
    assert before["Endpoints default/kubernetes"]["subsets"] == [{"addresses": [{"ip": "192.0.2.7"}], "ports": [port]}]
    running.close()
    again = start_serve(tmp_path / "host", arguments=arguments)
    # A namespace of our own comes last: when it has its ConfigMap, the others were checked.
    again.kubectl("create", "namespace", "zz")
    after = eventually(lambda: published(again.kubectl), lambda seen: f"ConfigMap zz/{ROOT_CA}" in seen)
    assert {name: after[name] for name in before} == before
    again.kubectl("delete", "namespace", "zz", "--timeout=90s")
    assert f"ConfigMap zz/{ROOT_CA}" not in published(again.kubectl)
    again.close()


def test_a_policy_for_everything_leaves_the_system_objects_on_the_host(tmp_path: Path) -> None:
    policy = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {
            "schedulingMode": "Duplicate",
            "resourceSelectors": [
                {"apiVersion": "v1", "kind": "ConfigMap"},
                {"apiVersion": "v1", "kind": "Service"},
                {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"},
            ],
        },
    }
    with federation(tmp_path / "fed", members=1) as running:
        wait_published(running.kubectl)
        running.kubectl.apply(policy)
        running.kubectl("create", "configmap", "mine", "--from-literal=a=b")
        member = running.member(running.members[0])
        eventually(lambda: member.run("get", "configmap", "mine").returncode, lambda code: code == 0, what="mine")
        federated = running.kubectl("get", "federatedobjects", "-A", "-o", "name")
        assert "mine" in federated
        assert "kubernetes" not in federated
        assert "kube-root-ca" not in federated
        own, host = wait_published(member), published(running.kubectl)
        name = f"ConfigMap default/{ROOT_CA}"
        assert own[name]["data"] != host[name]["data"], "the member keeps its own certificate"
