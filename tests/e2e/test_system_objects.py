"""The objects of every API server: present after the start, unchanged by a restart, and never in members."""

import base64
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from federation.api import names
from tests.support.federation import Kubectl, eventually, federation, start_serve
from tests.support.ports import lasting_port

pytestmark = pytest.mark.e2e
ROOT_CA, AUTHENTICATION = "kube-root-ca.crt", "extension-apiserver-authentication"


def published(kubectl: Kubectl) -> dict[str, Any]:
    """Return the objects by kind and name."""
    api = kubectl.api()
    wanted = {"kubernetes", ROOT_CA, AUTHENTICATION}
    return {
        f"{found['kind'].removesuffix('List')} {obj['metadata']['namespace']}/{obj['metadata']['name']}": obj
        for plural in ("services", "endpoints", "discovery.k8s.io/v1/endpointslices", "configmaps")
        for found in [api.list(plural, namespace="")]
        for obj in found["items"]
        if obj["metadata"]["name"] in wanted
    }


def wait_published(kubectl: Kubectl) -> dict[str, Any]:
    wanted = {
        *(f"{kind} default/kubernetes" for kind in ("Service", "Endpoints", "EndpointSlice")),
        *(f"ConfigMap {name}/{ROOT_CA}" for name in ("default", "kube-system", "kube-public", "kube-node-lease")),
        f"ConfigMap kube-system/{AUTHENTICATION}",
    }
    return eventually(lambda: published(kubectl), lambda seen: wanted <= seen.keys(), what="system objects")


def test_a_restart_does_not_write_the_system_objects_again(tmp_path: Path) -> None:
    port = lasting_port()
    arguments = ["--port", str(port), "--advertise-address", "192.0.2.7"]
    with closing(start_serve(tmp_path / "host", arguments=arguments)) as running:
        before = wait_published(running.kubectl)
        config = yaml.safe_load(running.kubectl.kubeconfig.read_text())["clusters"][0]["cluster"]
        authority = base64.b64decode(config["certificate-authority-data"]).decode()
        assert before["ConfigMap default/kube-root-ca.crt"]["data"] == {"ca.crt": authority}
        authentication = before[f"ConfigMap kube-system/{AUTHENTICATION}"]["data"]
        assert authentication["client-ca-file"] == authority
        assert authentication["requestheader-client-ca-file"] not in {"", authority}
        ports = [{"name": "https", "port": port, "protocol": "TCP"}]
        addresses = [{"ip": "192.0.2.7"}]
        assert before["Endpoints default/kubernetes"]["subsets"] == [{"addresses": addresses, "ports": ports}]
        link = {"name": "ui-link-1", "labels": {names.LOGIN_LINK_LABEL: "true"}}
        running.api(names.SYSTEM_NAMESPACE).create("secrets", {"metadata": link})
    with closing(start_serve(tmp_path / "host", arguments=arguments)) as again:
        # Earlier versions stored one-time links.
        assert "ui-link-1" not in [
            each["metadata"]["name"] for each in again.api(names.SYSTEM_NAMESPACE).list("secrets")["items"]
        ]
        # A namespace of our own comes last: when it has its ConfigMap, the others were checked.
        api = again.api("")
        api.create("namespaces", {"metadata": {"name": "zz"}})
        after = eventually(lambda: published(again.kubectl), lambda seen: f"ConfigMap zz/{ROOT_CA}" in seen)
        assert {name: after[name] for name in before} == before
        api.delete("namespaces", "zz")
        api.wait_gone("namespaces", "zz")
        assert f"ConfigMap zz/{ROOT_CA}" not in published(again.kubectl)


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
        running.api().create("configmaps", {"metadata": {"name": "mine"}, "data": {"a": "b"}})
        member = running.member(running.members[0])
        eventually(lambda: member.api().exists("configmaps", "mine"), bool, what="mine")
        federated = running.api().names("federatedobjects")
        assert any("mine" in name for name in federated)
        assert not any("kubernetes" in name or "kube-root-ca" in name for name in federated)
        own, host = wait_published(member), published(running.kubectl)
        name = f"ConfigMap default/{ROOT_CA}"
        assert own[name]["data"] != host[name]["data"], "the member keeps its own certificate"
