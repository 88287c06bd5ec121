"""The root certificates that we publish, beside a real controller manager that publishes them as well."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster import controllers_on
from tests.support.federation import Kubectl, eventually, start_serve

from federation.apiserver.auth.pki import ensure_pki

PUBLISHER = ("root-ca-certificate-publisher-controller",)
ROOT_CA = "kube-root-ca.crt"


def published(kubectl: Kubectl) -> dict[str, Any]:
    """Return the root certificate ConfigMap of every namespace."""
    found = kubectl.json("get", "configmaps", "-A", "--field-selector", f"metadata.name={ROOT_CA}")["items"]
    return {obj["metadata"]["namespace"]: obj for obj in found}


def wait_published(kubectl: Kubectl, certificate: str) -> dict[str, Any]:
    """Wait until every namespace has the certificate."""
    namespaces = {obj["metadata"]["name"] for obj in kubectl.json("get", "namespaces")["items"]}
    return eventually(
        lambda: published(kubectl),
        lambda seen: {name for name, obj in seen.items() if obj["data"] == {"ca.crt": certificate}} == namespaces,
        what="root certificates",
    )


@pytest.mark.parametrize("is_ours", [True, False], ids=["the same certificate", "another certificate"])
def test_a_controller_manager_and_we_do_not_overwrite_each_other(tmp_path: Path, is_ours: bool) -> None:
    running = start_serve(tmp_path / "host")
    try:
        kubectl = running.kubectl
        directory = running.directory / "pki" if is_ours else tmp_path / "other"
        pki = ensure_pki(directory, now=datetime.now(UTC), common_name="federation" if is_ours else "other")
        certificate = pki.ca_certificate.read_text()
        with controllers_on(
            tmp_path / "controllers", kubectl.kubeconfig, pki=pki, with_scheduler=False, controllers=PUBLISHER
        ):
            before = wait_published(kubectl, certificate)
            for number in range(5):
                # Each round trip through both publishers gives them time for another write of the earlier ones.
                kubectl("create", "namespace", f"n{number}")
                after = wait_published(kubectl, certificate)
            versions = {name: obj["metadata"]["resourceVersion"] for name, obj in before.items()}
            assert {name: after[name]["metadata"]["resourceVersion"] for name in before} == versions
            kubectl("delete", "configmap", ROOT_CA, "-n", "n0")
            kubectl("patch", "configmap", ROOT_CA, "-n", "n1", "-p", '{"data":{"ca.crt":"wrong"}}')
            wait_published(kubectl, certificate)
            kubectl("delete", "namespace", "n2", "--timeout=30s")
    finally:
        running.close()
