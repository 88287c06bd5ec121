"""A FederatedTypeConfig that cannot work is refused with its field and the remedy, not stored and ignored."""

from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
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


def a_config(name: str = "deployments.apps", **source: Any) -> Object:
    config = deepcopy(SHIPPED["deployments.apps"])
    config["metadata"]["name"] = name
    config["spec"]["sourceType"].update(source)
    return config


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
async def test_a_wrong_source_type_is_refused(host: Tenants, change: dict[str, str], field: str, remedy: str) -> None:
    root = await host.root()
    answer = await root.post(CONFIGS, json=a_config(**change))
    assert answer.status_code == 422, answer.text
    assert answer.json()["details"]["causes"][0]["field"] == field
    assert remedy in answer.json()["message"]


async def test_an_unknown_controller_is_refused(host: Tenants) -> None:
    root = await host.root()
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
    assert "field is immutable" in answer.json()["message"]
    answer = await root.patch(path, json={"spec": {"autoMigration": {"enabled": False}}}, headers=MERGE)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("name", sorted(SHIPPED))
async def test_every_shipped_configuration_is_accepted(host: Tenants, name: str) -> None:
    root = await host.root()
    assert (await root.post(CONFIGS, json=SHIPPED[name])).status_code == 201
