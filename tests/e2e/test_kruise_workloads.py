"""CloneSets on a federation, with the real kubectl: apply, columns, scale, explain, and `fedctl why`."""

import json
from typing import Any

import pytest

from tests.support.federation import eventually, fedctl, federation

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("kruise-workloads")]


def _policy(kind: str, name: str, mode: str, *selectors: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"schedulingMode": mode, "resourceSelectors": list(selectors)},
    }


def _clone_set() -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
    strategy = {"type": "InPlaceIfPossible", "maxUnavailable": 2}
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": template, "updateStrategy": strategy},
    }


def test_a_clone_set_is_used_like_a_deployment(tmp_path_factory: pytest.TempPathFactory) -> None:
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    with federation(tmp_path_factory.mktemp("kruise") / "fed") as fed:
        kubectl = fed.kubectl
        manifests = (
            _policy(
                "ClusterPropagationPolicy", "kinds", "Duplicate", {**definition, "name": "clonesets.apps.kruise.io"}
            ),
            _policy(
                "PropagationPolicy", "web", "Divide", {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
            ),
            _clone_set(),
        )
        kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, manifests)))

        def columns() -> list[str]:
            return kubectl("get", "clone", "web", "--no-headers").split()[:-1]

        eventually(columns, lambda seen: seen == ["web", "1", "1", "1", "1", "1", "1"], what="one ready replica")
        header = kubectl("get", "cloneset").splitlines()[0].split()
        assert header == ["NAME", "DESIRED", "UPDATED", "UPDATED_READY", "UPDATED_AVAILABLE", "READY", "TOTAL", "AGE"]
        assert "partition" in kubectl("explain", "cloneset.spec.updateStrategy")

        kubectl("scale", "cloneset/web", "--replicas=6")
        eventually(columns, lambda seen: seen == ["web", "6", "6", "6", "6", "6", "6"], what="six ready replicas")

        def pods() -> dict[str, list[str]]:
            path = '{range .items[*]}{.metadata.name}={.status.containerStatuses[0].image}{"\\n"}{end}'
            shown = {each: fed.member(each)("get", "pods", "-o", f"jsonpath={path}") for each in fed.members}
            return {each: sorted(text.split()) for each, text in shown.items()}

        before = pods()
        assert {each: len(found) for each, found in before.items()} == dict.fromkeys(fed.members, 2)
        change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}]
        kubectl("patch", "cloneset", "web", "--type=json", "-p", json.dumps(change))
        wanted = {each: [pod.replace("web:1", "web:2") for pod in found] for each, found in before.items()}
        eventually(pods, lambda seen: seen == wanted, what="the same pods with the new image")
        eventually(columns, lambda seen: seen == ["web", "6", "6", "6", "6", "6", "6"], what="six updated replicas")

        shown = fedctl("why", "cloneset/web", "--kubeconfig", str(kubectl.kubeconfig)).stdout
        assert all(each in shown for each in fed.members)
