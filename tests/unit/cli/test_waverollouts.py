"""`fedctl rollout` against a real API server: printed output, exit codes, and what is written."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.support.apiserver import Parts, api_server
from tests.support.manifests import a_deployment
from typer.testing import CliRunner

from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_ROLLOUTS
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, REPLICA_SETS, Object
from federation.cli.main import app
from federation.client.client import PatchType
from federation.client.local import LocalClient
from federation.planning.federatedobject.templatehistory import plan_history

NAME = "web-deployments.apps"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with api_server(tmp_path_factory.mktemp("cli")) as parts:
        parts.run(_prepare(parts))
        yield parts


async def _prepare(parts: Parts) -> None:
    await parts.registry.install_crds(crd_manifests())
    client = LocalClient(parts.registry)
    await client.create(CONFIGMAPS, {"metadata": {"name": "web", "namespace": "default"}})
    await client.create(DEPLOYMENTS, a_deployment("plain"))
    source = await client.create(DEPLOYMENTS, a_deployment("web"))
    after: Object = {**source["spec"]["template"], "spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}
    for entry in plan_history(DEPLOYMENTS, source, source["spec"]["template"], after, []).creates:
        await client.create(REPLICA_SETS, entry)
    await client.patch(DEPLOYMENTS, "web", {"spec": {"template": after}}, namespace="default")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body = {
        "apiVersion": FEDERATED_ROLLOUTS.api_version,
        "kind": "FederatedRollout",
        "metadata": {"name": NAME, "namespace": "default"},
        "spec": {"targetRef": target},
    }
    await client.create(FEDERATED_ROLLOUTS, body)


def set_status(parts: Parts, **status: Any) -> None:
    client = LocalClient(parts.registry)
    patch = [{"op": "add", "path": "/status", "value": status}]
    parts.run(
        client.patch(
            FEDERATED_ROLLOUTS, NAME, patch, patch_type=PatchType.JSON, namespace="default", subresource="status"
        )
    )


def spec(parts: Parts) -> Object:
    found: Object = parts.run(LocalClient(parts.registry).get(FEDERATED_ROLLOUTS, NAME, "default"))["spec"]
    return found


def run(server: Parts, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["rollout", *arguments, "--kubeconfig", str(Path(server.kubeconfig))])


def a_wave(name: str, state: str, **fields: Any) -> Object:
    return {"name": name, "state": state, "clusters": ["east"], **fields}


STARTED = "2026-01-01T00:00:00Z"


def test_status_shows_each_cluster_with_its_wave_and_the_reason_to_wait(server: Parts) -> None:
    east = {"name": "east", "wave": "canary", "revision": "0123456789abcdef", "target": "0123456789abcdef", "good": "x"}
    west = {"name": "west", "wave": "remaining", "revision": "x", "target": "0123456789abcdef", "good": "x"}
    set_status(
        server,
        state="Progressing",
        revision=2,
        wave="canary",
        progress="1/2",
        policy="PropagationPolicy default/web",
        message="wave canary soaks until 2026-01-01T00:01:00Z",
        waves=[a_wave("canary", "Soaking", startedAt=STARTED), a_wave("remaining", "Pending")],
        clusters=[
            {**east, "replicas": 4, "updatedReplicas": 4, "readyReplicas": 3},
            {**west, "replicas": 2, "message": "waits for wave remaining"},
        ],
    )
    result = run(server, "status", "deployment/web")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "deployment/web: Progressing, 1/2 clusters",
        "  policy:   PropagationPolicy default/web",
        "  wave:     canary",
        "  waits:    wave canary soaks until 2026-01-01T00:01:00Z",
        "CLUSTER  WAVE       REVISION    TARGET      REPLICAS  UPDATED  READY  WAITS",
        "east     canary     0123456789  0123456789  4         4        3",
        "west     remaining  x           0123456789  2         0        0      waits for wave remaining",
    ]
    set_status(server, state="Complete", revision=2)
    assert run(server, "status", "deploy/web", "-o", "json").exit_code == 0


def test_history_and_undo_use_what_kubectl_uses(server: Parts) -> None:
    result = run(server, "history", "deployment/web")
    assert result.output.splitlines() == [
        "REVISION  IMAGES      CHANGE-CAUSE",
        "1         nginx:1.27  <none>",
        "2         nginx:2     <none>",
    ]
    assert run(server, "undo", "deployment/web", "--to-revision", "7").exit_code == 1
    result = run(server, "undo", "deployment/web")
    assert result.output == "deployment/web: the pod template is that of revision 1 again\n"
    template = server.run(LocalClient(server.registry).get(DEPLOYMENTS, "web", "default"))["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "nginx:1.27"
    assert template["metadata"]["labels"] == {"app": "web"}
    assert run(server, "history", "deployment/plain").output == "its pod template has never changed\n"
    assert "ConfigMap has no rollout history" in str(run(server, "history", "configmap/web").exception)
    assert run(server, "undo", "deployment/plain").exit_code == 1


def test_pause_and_resume_write_the_spec(server: Parts) -> None:
    assert run(server, "pause", "deployment/web").output == "deployment/web: no other wave starts\n"
    assert spec(server)["paused"] is True
    assert run(server, "resume", "deployment/web").output == "deployment/web: waves start again\n"
    assert spec(server)["paused"] is False


def test_approve_names_the_wave_that_waits(server: Parts) -> None:
    waves = [a_wave("canary", "Complete", startedAt=STARTED), a_wave("second", "WaitingForApproval")]
    set_status(server, state="Progressing", revision=3, waves=waves)
    assert run(server, "approve", "deployment/web").output == "deployment/web: wave second of rollout 3 is approved\n"
    assert spec(server)["approvedWave"] == {"revision": 3, "wave": "second"}
    # A failed wave: the approval concerns the wave after it.
    waves = [a_wave("canary", "Failed", startedAt=STARTED), a_wave("third", "Pending")]
    set_status(server, state="Stopped", revision=4, waves=waves, failure="pods crash")
    refused = run(server, "approve", "deployment/web")
    assert (refused.exit_code, "give a reason" in str(refused.exception)) == (1, True)
    assert "wave third of rollout 4" in run(server, "approve", "deployment/web", "--reason", "known").output
    assert "overridden: known" in run(server, "status", "deployment/web").output
    for state, found in (("Stopped", waves[:1]), ("Progressing", waves), ("Complete", [])):
        set_status(server, state=state, revision=4, waves=found)
        result = run(server, "approve", "deployment/web")
        assert (result.exit_code, "no wave waits for approval" in str(result.exception)) == (1, True)


def test_abort_names_the_rollout_in_progress(server: Parts) -> None:
    set_status(server, state="Progressing", revision=5)
    assert run(server, "abort", "deployment/web").output == "deployment/web: rollout 5 is aborted\n"
    assert spec(server)["abort"] == 5
    set_status(server, state="Complete", revision=5)
    result = run(server, "abort", "deployment/web")
    assert (result.exit_code, "its state is Complete" in str(result.exception)) == (1, True)


def test_rollback_names_the_rollout_that_is_under_way_or_has_stopped(server: Parts) -> None:
    for number, state in ((6, "Progressing"), (7, "Stopped")):
        set_status(server, state=state, revision=number)
        printed = run(server, "rollback", "deployment/web").output
        assert printed == f"deployment/web: the clusters of rollout {number} return to their earlier template\n"
        assert spec(server)["rollBack"] == number
    set_status(server, state="Complete", revision=7)
    result = run(server, "rollback", "deployment/web")
    assert (result.exit_code, "its state is Complete" in str(result.exception)) == (1, True)


def test_what_concerns_waves_is_an_error_without_them(server: Parts) -> None:
    result = run(server, "abort", "deployment/plain")
    assert (result.exit_code, "none of its policies has spec.rollout" in str(result.exception)) == (1, True)
    assert "ConfigMap has no rollout" in str(run(server, "status", "configmap/web").exception)
    result = run(server, "status", "deployment/plain")
    assert (result.exit_code, result.output.splitlines()) == (
        1,
        ["deployment/plain: Progressing, 0/0 clusters", "it runs in no cluster"],
    )


def test_a_pause_without_waves_is_that_of_the_workload(server: Parts) -> None:
    def is_paused(name: str) -> object:
        return server.run(LocalClient(server.registry).get(DEPLOYMENTS, name, "default"))["spec"].get("paused")

    result = run(server, "pause", "deployment/plain")
    assert result.output == "deployment/plain: no cluster gets another pod template\n"
    assert is_paused("plain") is True
    assert "Paused" in run(server, "status", "deployment/plain").output
    assert run(server, "resume", "deployment/plain").exit_code == 0
    assert not is_paused("plain")
    # With waves, `resume` also ends what `kubectl rollout pause` began.
    client = LocalClient(server.registry)
    server.run(client.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}}, namespace="default"))
    assert run(server, "resume", "deployment/web").exit_code == 0
    assert (not is_paused("web"), spec(server)["paused"]) == (True, False)
    assert "has no field to pause its updates" in str(run(server, "pause", "configmap/web").exception)
