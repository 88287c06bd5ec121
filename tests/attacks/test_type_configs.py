"""A FederatedTypeConfig that cannot work is refused with its field and the remedy, not stored and ignored."""

from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support.tenants import MERGE, OURS, Tenants, tenants

from federation.api import names
from federation.api.federatedtype import default_type_configs
from federation.apimachinery.resources import Object

CONFIGS = f"{OURS}/federatedtypeconfigs"
SHIPPED = {config["metadata"]["name"]: config for config in default_type_configs()}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        yield served


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def refusing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tenants]:
    """One host for all requests that it refuses."""
    async with tenants(tmp_path_factory.mktemp("host")) as served:
        yield served


def a_config(name: str = "deployments.apps", **source: Any) -> Object:
    config = deepcopy(SHIPPED["deployments.apps"])
    config["metadata"]["name"] = name
    config["spec"]["sourceType"].update(source)
    return config


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("change", "field", "remedy"),
    [
        ({"pluralName": "deployment"}, "spec.sourceType.pluralName", 'the host serves Deployment as "deployments"'),
        ({"scope": "Cluster"}, "spec.sourceType.scope", 'Deployment has the scope "Namespaced"'),
        ({"scope": "Nowhere"}, "spec.sourceType.scope", 'supported values: "Namespaced", "Cluster"'),
        ({"kind": ""}, "spec.sourceType", "spec.sourceType.kind: Required value"),
    ],
    ids=["plural", "scope", "unknown scope", "no kind"],
)
async def test_a_wrong_source_type_is_refused(
    refusing: Tenants, change: dict[str, str], field: str, remedy: str
) -> None:
    root = await refusing.root()
    answer = await root.post(CONFIGS, json=a_config(**change))
    assert answer.status_code == 422, answer.text
    assert answer.json()["details"]["causes"][0]["field"] == field
    assert remedy in answer.json()["message"]


@pytest.mark.asyncio(loop_scope="module")
async def test_an_unknown_controller_is_refused(refusing: Tenants) -> None:
    root = await refusing.root()
    config = a_config()
    config["spec"]["controllers"] = [[names.GLOBAL_SCHEDULER], ["kubeadmiral.io/overidepolicy-controller"]]
    answer = await root.post(CONFIGS, json=config)
    assert answer.status_code == 422, answer.text
    assert answer.json()["details"]["causes"][0]["field"] == "spec.controllers[1][0]"
    assert f'"{names.OVERRIDE_CONTROLLER}"' in answer.json()["message"]


async def test_a_second_configuration_of_a_kind_is_refused(host: Tenants) -> None:
    root = await host.root()
    assert (await root.post(CONFIGS, json=a_config())).status_code == 201
    answer = await root.post(CONFIGS, json=a_config("mine"))
    assert answer.status_code == 422, answer.text
    assert 'Deployment is federated by "deployments.apps" already' in answer.json()["message"]


async def test_the_kind_of_a_configuration_does_not_change_but_everything_else_may(host: Tenants) -> None:
    root = await host.root()
    assert (await root.post(CONFIGS, json=a_config())).status_code == 201
    path = f"{CONFIGS}/deployments.apps"
    answer = await root.patch(path, json={"spec": {"sourceType": {"kind": "ReplicaSet"}}}, headers=MERGE)
    assert answer.status_code == 422, answer.text
    assert "only version may change" in answer.json()["message"]
    answer = await root.patch(path, json={"spec": {"autoMigration": {"enabled": False}}}, headers=MERGE)
    assert answer.status_code == 200, answer.text


async def test_every_shipped_configuration_is_accepted(host: Tenants) -> None:
    root = await host.root()
    answers = {name: await root.post(CONFIGS, json=config) for name, config in SHIPPED.items()}
    assert {name: answer.text for name, answer in answers.items() if answer.status_code != 201} == {}


def with_rules(*rules: Any) -> Object:
    config = a_config("widgets.example.com", group="example.com", version="v1", kind="Widget", pluralName="widgets")
    config["spec"]["statusAggregation"] = {"enabled": True, "rules": list(rules)}
    return config


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("rule", "field", "remedy"),
    [
        ({"path": "status.a", "expression": "members.map("}, "rules[1].expression", "Syntax error"),
        ({"path": "status.a", "expression": "source.sepc"}, "rules[1].expression", "undefined field 'sepc'"),
        ({"path": "status.a", "expression": "1 + 'a'"}, "rules[1].expression", "no matching overload"),
        ({"path": "status.conditions", "expression": "'a'"}, "rules[1].expression", "must evaluate to list"),
        ({"path": "status.phase.x", "expression": "1"}, "rules[1].path", "an earlier rule computes"),
        ({"path": "status.observedGeneration", "expression": "1"}, "rules[1].path", "choose another field"),
        ({"path": "spec.size", "expression": "1"}, "rules[1].path", "should match"),
        ({"path": "status", "expression": "1"}, "rules[1].path", "should match"),
        ({"path": "status.a"}, "rules[1].expression", "Required value"),
        ({"expression": "1"}, "rules[1].path", "Required value"),
        ({"path": "status.a", "expression": "1" * 9000}, "rules[1].expression", "Too long"),
        (7, "rules[1]", "must be of type object"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
async def test_a_status_rule_that_cannot_work_is_refused(refusing: Tenants, rule: Any, field: str, remedy: str) -> None:
    root = await refusing.root()
    answer = await root.post(CONFIGS, json=with_rules({"path": "status.phase", "expression": "'Up'"}, rule))
    assert answer.status_code == 422, answer.text
    causes = answer.json()["details"]["causes"]
    assert [each["field"] for each in causes if remedy in each["message"]] == [f"spec.statusAggregation.{field}"], (
        causes
    )


async def test_rules_are_for_kinds_without_a_merge_of_their_own_and_limited_in_number(host: Tenants) -> None:
    root = await host.root()
    rule = {"path": "status.phase", "expression": "'Up'"}
    config = a_config()
    config["spec"]["statusAggregation"] = {"enabled": True, "rules": [rule]}
    answer = await root.post(CONFIGS, json=config)
    assert answer.status_code == 422, answer.text
    assert "Deployment has a merge of its own" in answer.json()["message"]
    many = [{**rule, "path": f"status.f{index}"} for index in range(17)]
    answer = await root.post(CONFIGS, json=with_rules(*many))
    assert answer.status_code == 422, answer.text
    assert (await root.post(CONFIGS, json=with_rules(*many[:16]))).status_code == 201
