"""Invalid input causes one line on standard error and a non-zero exit code."""

import json
import socket
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.federation import Federation, fedctl, start_serve
from tests.support.shared import new_namespace

pytestmark = [pytest.mark.e2e, pytest.mark.slow("commands of fedctl"), pytest.mark.xdist_group("shared")]


@pytest.fixture
def fed(shared_federation: Federation) -> Federation:
    """The federation that others use, too: what is refused changes nothing in it."""
    return shared_federation


def refused(*arguments: str, **environment: str) -> str:
    done = fedctl(*arguments, check=False, **environment)
    assert done.returncode != 0, done.stdout
    # What a slow command is doing is not its error.
    lines = [line for line in done.stderr.splitlines() if line.strip() and not line.endswith(" …")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def join(fed: Federation, name: str, kubeconfig: Path | str, *more: str) -> str:
    host = str(fed.kubectl.kubeconfig)
    return refused("join", name, "--kubeconfig", str(kubeconfig), "--host-kubeconfig", host, *more)


def test_a_missing_kubeconfig_is_named(fed: Federation, tmp_path: Path) -> None:
    assert str(tmp_path / "none") in join(fed, "x", tmp_path / "none")


def test_an_unparsable_kubeconfig_is_named(fed: Federation, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("a: [1,")
    assert str(broken) in join(fed, "x", broken)


def test_an_unknown_context_is_named(fed: Federation) -> None:
    member = fed.directory / "members" / "member-1.kubeconfig"
    assert "nowhere" in join(fed, "x", member, "--context", "nowhere")


def test_a_refused_connection_is_reported(fed: Federation, tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]  # refuses connections until it listens; no other process can take it
        line = join(fed, "x", kubeconfig_for(tmp_path, f"https://127.0.0.1:{port}"))
    assert "cannot be reached" in line


@pytest.mark.real_time
def test_a_server_that_never_answers_times_out(fed: Federation, tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        line = join(fed, "x", kubeconfig_for(tmp_path, f"https://127.0.0.1:{listener.getsockname()[1]}"))
    assert "does not answer" in line


def test_wrong_credentials_are_reported(fed: Federation, tmp_path: Path) -> None:
    port = int(fed.api(member="member-1").connection.server.rsplit(":", 1)[1])
    alias = f"https://localhost:{port}"
    line = join(fed, "x", kubeconfig_for(tmp_path, alias, token="wrong"))
    assert "refuses the kubeconfig's credentials" in line


def test_refused_credentials_of_the_host_name_server_and_file(fed: Federation, tmp_path: Path) -> None:
    server = fed.api().connection.server
    path = kubeconfig_for(tmp_path, server, token="wrong")
    for command in (("clusters",), ("why", "deployment/web"), ("get", "pods")):
        line = refused(*command, "--kubeconfig", str(path))
        assert f"{server} refuses the credentials in {path}: they are wrong, expired or revoked" in line


def test_joining_the_same_cluster_twice_is_rejected(fed: Federation) -> None:
    member = fed.directory / "members" / "member-1.kubeconfig"
    assert "already joined" in join(fed, "member-1", member)
    assert 'already joined as "member-1"' in join(fed, "other-name", member)


def test_joining_a_member_of_another_federation_is_rejected(fed: Federation, tmp_path: Path) -> None:
    member = fed.directory / "members" / "member-1.kubeconfig"
    with closing(start_serve(tmp_path / "second")) as second:
        line = join(second, "stolen", member)
    assert "belongs to another federation" in line


def test_invalid_labels_and_taints_are_named(fed: Federation) -> None:
    member = fed.directory / "members" / "member-1.kubeconfig"
    assert "--labels" in join(fed, "x", member, "--labels", "nonsense")
    assert "--taints" in join(fed, "x", member, "--taints", "a=b:Sometimes")


def test_unjoining_an_unknown_cluster_is_rejected(fed: Federation) -> None:
    assert "is not joined" in refused("unjoin", "nobody", "--kubeconfig", str(fed.kubectl.kubeconfig))


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        line = refused("serve", "--dir", str(tmp_path / "d"), "--port", str(port))
    assert str(port) in line
    assert "--port" in line


def test_a_directory_used_by_another_process_is_rejected(fed: Federation) -> None:
    assert "another fedctl" in refused("serve", "--dir", str(fed.directory), "--port", "0")


def test_an_unwritable_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("serve", "--dir", str(tmp_path / "file" / "below"), "--port", "0")


def test_a_directory_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "newer"
    directory.mkdir()
    (directory / "version.json").write_text('{"format": 999, "writtenBy": "99.0"}')
    assert "newer version" in refused("serve", "--dir", str(directory), "--port", "0")


def test_why_names_an_unknown_object(fed: Federation) -> None:
    line = refused("why", "deployment/none", "--kubeconfig", str(fed.kubectl.kubeconfig))
    assert "deployment" in line.lower()
    assert "none" in line


def test_why_reports_that_no_policy_applies(fed: Federation) -> None:
    namespace = new_namespace(fed, "lonely")
    fed.kubectl("create", "deployment", "lonely", "--image=nginx", "-n", namespace)
    line = refused("why", "deploy/lonely", "-n", namespace, "--kubeconfig", str(fed.kubectl.kubeconfig))
    assert "no existing policy applies" in line
    assert "kubeadmiral.io/propagation-policy-name" in line


def test_why_names_the_annotation_that_disables_scheduling(fed: Federation) -> None:
    namespace = new_namespace(fed, "disabled")
    for annotation in ("kubeadmiral.io/no-scheduling", "kubeadmiral.io/no-federated-resource"):
        name = annotation.rpartition("/")[2]
        metadata = {"name": name, "annotations": {annotation: "yes"}}
        fed.api(namespace).create("configmaps", {"metadata": metadata})
        line = refused("why", f"configmap/{name}", "-n", namespace, "--kubeconfig", str(fed.kubectl.kubeconfig))
        assert f"annotation {annotation}" in line
        assert "remove the annotation" in line


def test_why_rejects_a_target_without_a_name(fed: Federation) -> None:
    assert "KIND/NAME" in refused("why", "deployment", "--kubeconfig", str(fed.kubectl.kubeconfig))


def test_a_missing_federation_kubeconfig_is_reported_with_the_remedy(tmp_path: Path) -> None:
    line = refused("clusters", KUBECONFIG="", HOME=str(tmp_path))
    assert "export KUBECONFIG" in line


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        ({"schedulingMode": "Divide", "unknownField": 1}, "spec.unknownField"),
        (
            {"schedulingMode": "Divide", "placement": [{"cluster": "a", "preferences": {"weight": -1}}]},
            "spec.placement[0].preferences.weight",
        ),
        ({"schedulingMode": "Sometimes"}, "spec.schedulingMode"),
        ({}, "spec.schedulingMode"),
    ],
)
def test_an_invalid_policy_is_rejected_by_field(fed: Federation, manifest: dict[str, object], field: str) -> None:
    policy = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "bad", "namespace": "default"},
        "spec": manifest,
    }
    done = fed.kubectl.run("apply", "-f", "-", stdin=json.dumps(policy))
    assert done.returncode != 0
    assert field in done.stderr


def test_an_invalid_override_path_is_rejected(fed: Federation) -> None:
    policy = {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": "bad", "namespace": "default"},
        "spec": {"overrideRules": [{"overriders": {"jsonpatch": [{"path": "spec.replicas", "value": 1}]}}]},
    }
    done = fed.kubectl.run("apply", "-f", "-", stdin=json.dumps(policy))
    assert done.returncode != 0
    assert "jsonpatch[0].path" in done.stderr


def kubeconfig_for(folder: Path, server: str, token: str = "t") -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        f"""apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{server}", insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
"""
    )
    return path


def test_keys_and_kubeconfigs_are_readable_by_their_owner_only(fed: Federation) -> None:
    for pattern in ("kubeconfig", "members/*.kubeconfig", "pki/*.key", "state.db"):
        for path in fed.directory.glob(pattern):
            assert path.stat().st_mode & 0o077 == 0, path
