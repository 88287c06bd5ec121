"""Errors about objects that do not exist."""

from pathlib import Path

import pytest
from tests.support.apiserver import api_server

from federation.api.crds import crd_manifests
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import CONFIGMAPS
from federation.client.kubeconfig import load_kubeconfig
from federation.client.local import LocalClient
from federation.plans.unknownnames import unknown_answer
from federation.terminal.kubeconfigcontext import client_for


@pytest.mark.parametrize(
    ("details", "says"),
    [
        ({"kind": "configmaps", "name": "setings"}, "not found; did you mean settings?"),
        ({"kind": "configmaps", "name": "zzz"}, "not found"),
        ({"kind": "configmaps", "name": "settings"}, "not found"),
        ({"kind": "widgets", "group": "none.example.com", "name": "settings"}, "not found"),
    ],
    ids=["a similar name", "no similar name", "in another namespace", "a kind that the host does not serve"],
)
def test_the_nearest_name_is_printed_where_there_is_one(details: dict[str, str], says: str, tmp_path: Path) -> None:
    with api_server(tmp_path) as host:
        host.run(host.registry.install_crds(crd_manifests()))

        async def ask() -> str:
            settings = {"metadata": {"name": "settings", "namespace": "default"}}
            await LocalClient(host.registry).create(CONFIGMAPS, settings)
            async with client_for(load_kubeconfig(host.kubeconfig)) as client:
                return str(await unknown_answer(client, NotFound("not found", details=details)))

        assert host.run(ask()) == says
