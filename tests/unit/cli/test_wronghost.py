"""A server that is not the host of a federation is recognised, and said."""

from pathlib import Path

import pytest
from tests.support.apiserver import api_server
from typer.testing import CliRunner

from federation.api import names
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import NAMESPACES
from federation.cli.main import app
from federation.client.local import LocalClient


@pytest.mark.parametrize("command", [["clusters"], ["why", "deployment/web"], ["doctor"], ["holds"]])
def test_commands_for_the_host_recognise_members_and_strangers(command: list[str], tmp_path: Path) -> None:
    with api_server(tmp_path) as parts:

        def problem() -> str:
            error = CliRunner().invoke(app, [*command, "--kubeconfig", str(parts.kubeconfig)]).exception
            assert isinstance(error, ConfigurationError)
            return str(error)

        assert problem().startswith(f"{parts.server} is not the host of a federation; give the federation's own")
        claim = {"name": names.SYSTEM_NAMESPACE, "annotations": {names.FEDERATED_CLUSTER_UID: "some-uid"}}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": claim}
        parts.run(LocalClient(parts.registry).create(NAMESPACES, namespace))
        assert problem().startswith(f"{parts.server} is a member of a federation, not its host; give the federation's")
