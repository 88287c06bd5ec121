"""Completion: commands, live names from a federation, and the forms of bash and kubectl."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.apiserver import Parts, api_server
from typer.completion import completion_init
from typer.testing import CliRunner

from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.resources import CONFIGMAPS
from federation.cli.main import app
from federation.client.local import LocalClient
from federation.features.types.shippedtypes import ensure_types
from federation.terminal.candidates import PATIENCE_VARIABLE

pytestmark = pytest.mark.xdist_group("completion")
_FEDCTL = "from federation.cli.entry import main; main()"
PATIENT = {PATIENCE_VARIABLE: "60"}
"""A busy machine needs longer than the two seconds that a shell waits."""
_KUBECTL = "from federation.cli.completion import complete_for_kubectl; complete_for_kubectl()"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with api_server(tmp_path_factory.mktemp("completion")) as parts:
        parts.run(_prepare(parts))
        yield parts


async def _prepare(parts: Parts) -> None:
    await parts.registry.install_crds(crd_manifests())
    client = LocalClient(parts.registry)
    await ensure_types(client)
    spec = {"apiEndpoint": "https://east", "secretRef": {"name": "east"}}
    for name in ("east", "eastern", "west"):
        await client.create(FEDERATED_CLUSTERS, {"metadata": {"name": name}, "spec": spec})
    await client.create(CONFIGMAPS, {"metadata": {"name": "settings", "namespace": "default"}})


def environment(server: Parts, *words: str) -> dict[str, str]:
    """Return what bash sets to complete the last word."""
    return {
        "KUBECONFIG": str(server.kubeconfig),
        "_FEDCTL_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("fedctl", *words)),
        "COMP_CWORD": str(len(words)),
        **PATIENT,
    }


def complete(server: Parts, *words: str) -> list[str]:
    """Return the candidates for the last word, as bash gets them."""
    completion_init()
    done = CliRunner().invoke(app, [], prog_name="fedctl", env=environment(server, *words))
    assert done.stderr == ""
    return done.stdout.split()


def test_the_command_completes_in_a_shell(server: Parts) -> None:
    command, given = [sys.executable, "-c", _FEDCTL], environment(server, "clusters", "ea")
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.split() == ["east", "eastern"]


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        (("clu",), ["clusters"]),
        (("clusters", "ea"), ["east", "eastern"]),
        (("cordon", "w"), ["west"]),
        (("diff", "--cluster", "w"), ["west"]),
        (("why", "configmap/s"), ["configmap/settings"]),
        (("why", "deploy"), ["deployment/"]),
        (("why", "nonsense/"), []),
        (("why", "-n", "kube-sys"), ["kube-system"]),
        (("--kubeconfig", "/none", "cordon", "w"), []),
    ],
)
def test_names_come_from_the_federation(server: Parts, words: tuple[str, ...], candidates: list[str]) -> None:
    assert complete(server, *words) == candidates


def test_contexts_come_from_the_kubeconfig(server: Parts) -> None:
    (context,) = complete(server, "--context", "")
    assert f"current-context: {context}" in server.kubeconfig.read_text()


def test_kubectl_gets_candidates_and_a_directive(server: Parts) -> None:
    command = [sys.executable, "-c", _KUBECTL, "uncordon", "eas"]
    done = subprocess.run(
        command, env={"KUBECONFIG": str(server.kubeconfig), **PATIENT}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["east", "eastern", ":4"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_it_can_read(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(CliRunner().invoke(app, ["completion", shell]).stdout)
    assert "_FEDCTL_COMPLETE=complete_" in script.read_text()
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(script)], check=True)
