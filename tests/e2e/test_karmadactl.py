"""The page about karmadactl's commands: kubectl's counterparts run on a host, and fedctl has the others."""

import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from federation.api.crds import crd_manifests
from federation.cli.main import app
from federation.client.kubeconfig import load_kubeconfig
from tests.support.apiserver import api_server
from tests.support.federation import Kubectl
from tests.support.manifests import a_deployment
from tests.support.rest import Api

pytestmark = pytest.mark.e2e
PAGE = Path(__file__).parents[2] / "docs/reference/karmadactl.md"
ROWS = re.findall(r"^\| `([a-z-]+)` \| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE)
PODS = ("attach",)
"""Commands of kubectl that need a running pod; test_kubectl_through_host.py has those of members."""


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    directory = tmp_path_factory.mktemp("host")
    with api_server(directory) as host, closing(Api(load_kubeconfig(host.kubeconfig), "default")) as api:
        host.run(host.registry.install_crds(crd_manifests()))
        api.create("deployments", a_deployment("web"))
        yield Kubectl(host.kubeconfig)


def test_the_page_has_every_command_once() -> None:
    names = [name for name, _ in ROWS]
    assert len(names) == 32
    assert names == sorted(set(names))


@pytest.mark.parametrize("command", sorted({command for _, command in ROWS if command.startswith("fedctl")}))
def test_fedctl_has_the_command_and_its_options(command: str) -> None:
    words = shlex.split(command)[1:]
    path = [] if words[0] == "--help" else words[: 2 if words[0] == "token" else 1]
    done = CliRunner().invoke(app, [*path, "--help"], terminal_width=200)
    assert done.exit_code == 0
    options = {word for word in words if word.startswith("-")} - {"--"}
    assert options <= {*re.findall(r"-C\b|--[a-z-]+", done.output)}


def test_kubectl_runs_the_others_on_the_host(kubectl: Kubectl, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: applied\ndata: {}\n")
    for name, command in ROWS:
        if not command.startswith("kubectl") or name in PODS:
            continue
        words = [str(manifest) if word == manifest.name else word for word in shlex.split(command)[1:]]
        if name == "edit":
            words = ["edit", "--help"]  # it starts an editor
        done = kubectl.run(*words)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout, command
    found = kubectl.json("get", "deployment", "web")
    assert (found["metadata"]["annotations"]["team"], found["metadata"]["labels"]["tier"]) == ("shop", "gold")
    assert found["spec"]["replicas"] == 3
