"""CloneSets on a federation, with the real kubectl: apply, columns, scale, explain, and `fedctl why`."""

import json
from typing import Any

import pytest

from tests.support.federation import Federation, eventually, fedctl
from tests.support.shared import new_namespace

pytestmark = [pytest.mark.e2e, pytest.mark.slow("kubectl on a federation"), pytest.mark.xdist_group("shared")]
CLONE_SETS = "apps.kruise.io/v1alpha1/clonesets"
COUNTED = (
    "replicas",
    "updatedReplicas",
    "updatedReadyReplicas",
    "updatedAvailableReplicas",
    "readyReplicas",
)


EQUALLY = [{"cluster": f"member-{number}", "preferences": {"weight": 1}} for number in (1, 2, 3)]


def _policy(kind: str, name: str, mode: str, *selectors: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"schedulingMode": mode, "resourceSelectors": list(selectors), **spec},
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


def test_a_clone_set_is_used_like_a_deployment(shared_federation: Federation) -> None:
    fed, namespace = shared_federation, new_namespace(shared_federation, "kruise")
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    fed.kubectl.apply(
        _policy("ClusterPropagationPolicy", "kruise", "Duplicate", {**definition, "name": "clonesets.apps.kruise.io"})
    )

    def kubectl(*arguments: str) -> str:
        return fed.kubectl("-n", namespace, *arguments)

    def counts() -> set[int]:
        status = fed.api(namespace).get(CLONE_SETS, "web").get("status", {})
        return {status.get(name, 0) for name in COUNTED}

    def becomes(replicas: int) -> None:
        eventually(counts, lambda seen: seen == {replicas}, what=f"{replicas} ready and updated replicas")
        assert kubectl("get", "clone", "web", "--no-headers").split()[:-1] == ["web", *[str(replicas)] * 6]

    api = fed.api(namespace)
    kind = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
    api.create("propagationpolicies", _policy("PropagationPolicy", "web", "Divide", kind, placement=EQUALLY))
    fed.kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(_clone_set()))
    becomes(1)
    header = kubectl("get", "cloneset").splitlines()[0].split()
    assert header == ["NAME", "DESIRED", "UPDATED", "UPDATED_READY", "UPDATED_AVAILABLE", "READY", "TOTAL", "AGE"]
    assert "partition" in kubectl("explain", "cloneset.spec.updateStrategy")

    kubectl("scale", "cloneset/web", "--replicas=6")
    becomes(6)

    def pods() -> dict[str, dict[str, str]]:
        """Return the images of the pods by name, for each member."""
        listed = {each: fed.api(namespace, member=each).list("pods")["items"] for each in fed.members}
        return {each: {pod["metadata"]["name"]: _image_of(pod) for pod in found} for each, found in listed.items()}

    before = pods()
    assert {each: len(found) for each, found in before.items()} == dict.fromkeys(fed.members, 2)
    change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}]
    kubectl("patch", "cloneset", "web", "--type=json", "-p", json.dumps(change))
    wanted = {each: dict.fromkeys(found, "web:2") for each, found in before.items()}
    eventually(pods, lambda seen: seen == wanted, what="the same pods with the new image")
    becomes(6)

    shown = fedctl("why", "cloneset/web", "-n", namespace, "--kubeconfig", str(fed.kubectl.kubeconfig)).stdout
    assert all(each in shown for each in fed.members)
    kubectl("delete", "cloneset/web")


def _image_of(pod: dict[str, Any]) -> str:
    return "".join(each["image"] for each in pod.get("status", {}).get("containerStatuses", ()))
