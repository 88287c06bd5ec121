"""Attack: what a workload reports in a member, or a tenant writes into a policy, becomes part of the next copy."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.attacks.test_rendered_objects_admission import forbid
from tests.support.manifests import a_deployment, a_policy
from tests.support.tenants import OURS, tenants
from tests.support.world import a_world

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.planning.failover.application import ApplicationRecord, State, record_of, record_text

NODE_NAME = State("east", fields={"spec.template.spec.nodeName": "master"})


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"aliasLabelName": "kubeadmiral.io/managed", "jsonPath": "{.a}"}, "aliasLabelName"),
        ({"annotation": names.PURGE, "jsonPath": "{.a}"}, "annotation"),
        ({"fieldPath": "spec.replicas", "jsonPath": "{.a}"}, "fieldPath"),
        ({"fieldPath": "metadata.namespace", "jsonPath": "{.a}"}, "fieldPath"),
        ({"aliasLabelName": "a", "fieldPath": "spec.a", "jsonPath": "{.a}"}, "rules[0]"),
        ({"jsonPath": "{.a}"}, "rules[0]"),
        ({"aliasLabelName": "a", "jsonPath": "{.a[*]}"}, "jsonPath"),
        ({"aliasLabelName": "a", "jsonPath": "{" + ".a" * 200 + "}"}, "jsonPath"),
    ],
)
async def test_a_rule_for_a_field_that_is_not_the_tenants_is_refused(
    tmp_path: Path, rule: dict[str, Any], field: str
) -> None:
    application = {"statePreservation": {"rules": [rule]}}
    policy = a_policy({"east": 1}, failover={"application": application})
    async with tenants(tmp_path) as host:
        editor = await host.client("editor")
        answer = await editor.post(f"{OURS}/namespaces/default/propagationpolicies", json=policy)
    assert answer.status_code == 422, answer.text
    assert "spec.failover.application.statePreservation.rules[0]" in answer.text
    assert field in answer.text


async def test_the_hosts_admission_judges_the_state_of_a_copy() -> None:
    async with a_world(members=("east", "west")) as world:
        await forbid(world, "!has(object.spec.template.spec.nodeName)", "nodeName is forbidden")
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, failover={"application": {}}))
        await world.create(DEPLOYMENTS, a_deployment("web", 1))
        await world.until_available("web", 1)
        federated = await world.federated("web")
        [home] = await world.replicas("web")
        state = {"metadata": {"annotations": {names.HANDED_STATE: _handed(home)}}}
        await world.merge(FEDERATED_OBJECTS, federated["metadata"]["name"], state)
        await world.pass_time(30)
        copy = await world.members[home].find(DEPLOYMENTS, "web")
        assert copy is not None
        assert "nodeName" not in copy["spec"]["template"]["spec"]
        assert "nodeName is forbidden" in (await world.condition("web", names.ADMITTED))["message"]
        state["metadata"]["annotations"] = {names.HANDED_STATE: None}
        await world.merge(FEDERATED_OBJECTS, federated["metadata"]["name"], state)


def _handed(cluster: str) -> str:
    return msgspec.json.encode({cluster: NODE_NAME}).decode()


async def test_a_tenant_who_writes_the_record_on_a_workload_changes_nothing() -> None:
    """Annotations of the federation's own records do not come from the user's object."""
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, failover={"application": {}}))
        web = a_deployment("web", 1)
        web["metadata"]["annotations"] = {
            names.APPLICATION_FAILOVER: record_text(ApplicationRecord("t", state=NODE_NAME)) or "",
            names.HANDED_STATE: _handed("east"),
        }
        await world.create(DEPLOYMENTS, web)
        await world.until_available("web", 1)
        federated = await world.federated("web")
        assert record_of(federated).state is None
        assert names.HANDED_STATE not in federated["metadata"]["annotations"]
        [home] = await world.replicas("web")
        copy = await world.members[home].find(DEPLOYMENTS, "web")
        assert copy is not None
        assert copy["spec"]["template"]["spec"].get("nodeName") != "master"
