"""Attack: the data of a Secret is read from the copies that the federation makes of it."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from tests.support.manifests import a_policy
from tests.support.tenants import FEDERATED, MERGE, OURS, rule, tenants
from tests.support.world import a_world

from federation.api.resources import COLLECTED_STATUSES, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.resources import EVENTS, SECRETS, Object
from federation.journal.decisions import DecisionFilter
from federation.planning.status.collection import collect

PLAIN = "correct-horse-battery"
HIDDEN = base64.b64encode(PLAIN.encode()).decode()
SECRET: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "password",
        "namespace": "default",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data":{{"a":"{HIDDEN}"}}}}'},
    },
    "data": {"a": HIDDEN},
}


async def test_copies_are_read_only_by_those_who_read_the_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with a_world() as world, tenants(tmp_path, world.registry) as host:
        config = await world.user.get(FEDERATED_TYPE_CONFIGS, "secrets")
        config["spec"]["statusCollection"] = {
            "enabled": True,
            "fields": ["data", "metadata", "type", "metadata.labels"],
        }
        await world.user.update(FEDERATED_TYPE_CONFIGS, config)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, schedulingMode="Duplicate"))
        await world.create(
            SECRETS,
            {
                **SECRET,
                "metadata": {**SECRET["metadata"], "labels": {"kubeadmiral.io/propagation-policy-name": "divide"}},
            },
        )

        async def collected() -> Any:
            return await world.find(COLLECTED_STATUSES, "password-secrets")

        found = await world.until(collected)
        await host.grant("viewer", rule("*", "federatedobjects,federatedobjects/status,collectedstatuses"))
        viewer = await host.client("viewer")
        path = f"{FEDERATED}/password-secrets"
        for answer in (
            await viewer.get(path),
            await viewer.get(f"{path}/status"),
            await viewer.get(FEDERATED),
            await viewer.get(f"{OURS}/federatedobjects"),
            await viewer.patch(path, json={}, headers=MERGE),
            await viewer.patch(f"{path}?dryRun=All", json={}, headers=MERGE),
            await viewer.delete(f"{path}?dryRun=All"),
            await viewer.delete(f"{FEDERATED}?dryRun=All"),
            await viewer.get(path, headers={"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}),
        ):
            assert answer.status_code == 403, answer.text
            assert PLAIN not in answer.text
            assert HIDDEN not in answer.text
        async with asyncio.timeout(60):  # an allowed watch does not end: the world's clock stands still
            assert (await viewer.get(FEDERATED, params={"watch": "1", "timeoutSeconds": "1"})).status_code == 403
        review = {"spec": {"resourceAttributes": {"verb": "get", "namespace": "default"}}}
        review["spec"]["resourceAttributes"] |= {"group": "core.kubeadmiral.io", "resource": "federatedobjects"}
        answer = await viewer.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=review)
        assert answer.json()["status"]["allowed"] is False
        await host.grant("editor", rule("get", "federatedobjects"))
        assert HIDDEN in (await (await host.client("editor")).get(path)).text

        public = [found, *(await world.user.list(EVENTS)).items]
        public += [str(record) for record in await world.journal.query(DecisionFilter(), limit=500)]
        assert HIDDEN not in str(public)
        assert PLAIN not in str(public)
        for entry in found["clusters"]:
            assert "data: may hold the data of the Secret" in entry["error"]
        printed = capsys.readouterr()
        assert HIDDEN not in printed.out + printed.err


def test_a_collected_status_shows_only_public_fields_of_a_secret() -> None:
    fields = [("data",), ("stringData",), ("metadata",), ("metadata", "annotations"), ("metadata", "managedFields")]
    collected, error = collect(SECRET, [*fields, ("metadata", "name"), ("kind",)], holds_secrets=True)
    assert collected == {"metadata": {"name": "password"}, "kind": "Secret"}
    assert HIDDEN not in error
    assert all(".".join(path) in error for path in fields)
    assert collect({"kind": "ConfigMap", "data": {"a": "1"}}, [("data",)])[0] == {"data": {"a": "1"}}
