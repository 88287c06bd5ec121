"""What `fedctl import` and `fedctl adopt` refuse before they ask another control plane."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.cli.previoushosts import GONE, refuse_running_host


def config_map(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", **metadata}}


OF_KARMADA = config_map(labels={"karmada.io/managed": "true"})


def refuse(live: dict[str, Any], given: str) -> None:
    asyncio.run(refuse_running_host([live], given))


@pytest.mark.parametrize(
    ("live", "given", "message"),
    [
        (OF_KARMADA, "", "Karmada delivered it.*--previous-host FILE.*--previous-host gone"),
        (config_map(labels={"kubeadmiral.io/managed": "true"}), "", "KubeAdmiral delivered it"),
        (config_map(finalizers=["karmada.io/x"]), GONE, "ConfigMap a has the finalizer karmada.io/x"),
        (OF_KARMADA, "/none/config", "/none/config"),
    ],
)
def test_an_object_of_another_control_plane_is_refused(live: dict[str, Any], given: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        refuse(live, given)


def test_an_api_server_that_does_not_answer_shows_nothing(tmp_path: Path) -> None:
    cluster = "{name: c, cluster: {server: 'http://127.0.0.1:1'}}"
    context = "{name: x, context: {cluster: c, user: u}}"
    text = f"{{clusters: [{cluster}], contexts: [{context}], users: [{{name: u, user: {{}}}}], current-context: x}}"
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(text)
    with pytest.raises(ConfigurationError, match="start its API server, or give gone"):
        refuse(OF_KARMADA, str(kubeconfig))


def test_objects_that_nobody_delivered_or_whose_control_plane_is_gone_pass() -> None:
    refuse(config_map(), "")
    refuse(OF_KARMADA, GONE)
