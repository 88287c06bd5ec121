"""Attack: a tenant writes a rule for clusters, or a rule makes the host call an address that it must not reach."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.tenants import OURS, tenants

from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions

POLICIES, REMEDIES = f"{OURS}/clustertaintpolicies", f"{OURS}/remedies"
TAINT = {"key": "a", "effect": "NoSchedule"}


def a_policy(**spec: Any) -> Object:
    return {"metadata": {"name": "a"}, "kind": "ClusterTaintPolicy", "spec": {"taints": [TAINT], **spec}}


def a_remedy(*actions: Object) -> Object:
    return {"metadata": {"name": "a"}, "kind": "Remedy", "spec": {"actions": list(actions)}}


async def test_a_tenant_writes_no_rule(tmp_path: Path) -> None:
    async with tenants(tmp_path) as host:
        root, editor = await host.root(), await host.client("editor")
        for path, body in ((POLICIES, a_policy()), (REMEDIES, a_remedy({"type": "Cordon"}))):
            manifest = {"apiVersion": OURS.removeprefix("/apis/"), **body}
            assert (await editor.post(path, json=manifest)).status_code == 403
            assert (await root.post(path, json=manifest)).status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (a_policy(taints=[{**TAINT, "key": "federation.kubeadmiral.io/drain"}]), "spec.taints[0].key"),
        (a_policy(taints=[TAINT] * 9), "spec.taints"),
        (a_policy(when=[{}]), "spec.when[0]"),
        (a_policy(when=[{"metrics": [{"measure": "Free", "below": 1}]}]), "spec.when[0].metrics[0].resource"),
        (a_policy(when=[{"metrics": [{"measure": "Nodes", "below": 1, "above": 2}]}]), "give one of above and below"),
        (a_policy(when=[{"metrics": [{"measure": "Nodes", "below": "10%"}]}]), "spec.when[0]"),
        (a_policy(holdSeconds=-1), "spec.holdSeconds"),
        (a_policy(maxClusters="half"), "spec.maxClusters"),
        (a_remedy({"type": "Taint"}), "spec.actions[0].taint"),
        (a_remedy({"type": "Cordon", "taint": TAINT}), "spec.actions[0].taint"),
        (a_remedy({"type": "Webhook", "webhook": {"url": "file:///etc/passwd"}}), "spec.actions[0].webhook.url"),
        (
            a_remedy({"type": "Taint", "taint": {**TAINT, "key": "federation.kubeadmiral.io/x"}}),
            "spec.actions[0].taint.key",
        ),
    ],
)
async def test_a_rule_that_cannot_be_read_or_takes_a_taint_of_ours_is_refused(
    tmp_path: Path, body: Object, field: str
) -> None:
    path = REMEDIES if body["kind"] == "Remedy" else POLICIES
    async with tenants(tmp_path) as host:
        answer = await (await host.root()).post(path, json={"apiVersion": OURS.removeprefix("/apis/"), **body})
    assert answer.status_code == 422, answer.text
    assert field in answer.text


async def test_a_webhook_reaches_no_address_of_the_host() -> None:
    client = WebhookClient(WebhookClientOptions(is_public_only=True))
    try:
        answer = await client.post(Connection("http://127.0.0.1:1/hook"), b"{}", {}, timeout_s=5)
    finally:
        await client.close()
    assert answer.status == 0
    assert not answer.is_listed
