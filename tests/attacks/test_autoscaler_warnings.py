"""An autoscaler on the host that would never act is not accepted without a word."""

from pathlib import Path

from tests.support.tenants import MERGE, OURS, tenants

from federation.apimachinery.resources import Object
from federation.client.local import LocalClient
from federation.features.types.shippedtypes import ensure_types

PATH = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


def a_scaler(name: str, api_version: str = "apps/v1", kind: str = "Deployment", **labels: str) -> Object:
    target = {"apiVersion": api_version, "kind": kind, "name": "web"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"scaleTargetRef": target, "maxReplicas": 5}}


async def test_an_autoscaler_that_no_policy_delivers_gets_a_warning(tmp_path: Path) -> None:
    async with tenants(tmp_path) as host:
        await ensure_types(LocalClient(host.parts.registry))
        editor = await host.client("editor")

        async def told(scaler: Object) -> str:
            answer = await editor.post(PATH, json=scaler)
            assert answer.status_code == 201, answer.text
            return " ".join(answer.headers.get_list("warning"))

        assert "Deployment web is federated and runs no pods on the host" in await told(a_scaler("lost"))
        assert await told(a_scaler("other", "example.com/v1", "Widget")) == ""
        labelled = a_scaler("named", **{"kubeadmiral.io/propagation-policy-name": "mine"})
        assert await told(labelled) == ""
        changed = {"spec": {"maxReplicas": 6}}
        answer = await editor.patch(f"{PATH}/lost", json=changed, headers=MERGE)
        assert "does not act" in " ".join(answer.headers.get_list("warning"))
        relabelled = await editor.patch(f"{PATH}/lost", json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
        assert "warning" not in relabelled.headers
        policy = {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "mine"},
            "spec": {
                "schedulingMode": "Duplicate",
                "resourceSelectors": [{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}],
            },
        }
        created = await editor.post(f"{OURS}/namespaces/default/propagationpolicies", json=policy)
        assert created.status_code == 201, created.text
        assert await told(a_scaler("selected")) == ""


async def test_an_autoscaler_where_a_policy_divides_workloads_gets_none(tmp_path: Path) -> None:
    async with tenants(tmp_path) as host:
        await ensure_types(LocalClient(host.parts.registry))
        editor = await host.client("editor")
        policy = {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "divide"},
            "spec": {"schedulingMode": "Divide"},
        }
        assert (await editor.post(f"{OURS}/namespaces/default/propagationpolicies", json=policy)).status_code == 201
        answer = await editor.post(PATH, json=a_scaler("acts"))
        assert answer.status_code == 201
        assert "warning" not in answer.headers
