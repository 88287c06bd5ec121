"""`fedctl get`, `describe`, `logs`, `exec` and `top` against a host with two members, one that is lost, and one that never answers."""

import os
import pty
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest
import yaml
from click.testing import Result
from tests.support.apiserver import Parts, api_server
from tests.support.federation import BIN, FEDCTL
from tests.support.rest import Api, eventually
from typer.testing import CliRunner

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.http.connectors import Connector
from federation.cli.main import app
from federation.client.kubeconfig import load_kubeconfig
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool
from federation.memberproxy.connector import MemberProxy
from federation.simulator.podconnections import PodExec, PodLogs

pytestmark = pytest.mark.xdist_group("member-commands")
OURS = ("core.kubeadmiral.io", "v1alpha1", "federatedclusters", "proxy")
LABELS = {"app": "web"}
CONTAINERS = [{"name": "nginx", "image": "nginx:1.27"}]
STARTED = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
CONTAINER_STATUS = {"name": "nginx", "ready": True, "restartCount": 0, "image": "nginx", "imageID": "nginx"}
STATUS = {"phase": "Running", "containerStatuses": [{**CONTAINER_STATUS, "state": STARTED}]}
SILENT = "fedctl: silent: no answer in 0.3 s\n"


def serve_pods(directory: Path) -> Iterator[tuple[Parts, Api]]:
    """Run an API server whose pods have logs and run commands, as a simulated member."""
    connectors: dict[tuple[str, str, str, str], Connector] = {}
    with (
        api_server(directory, connectors=connectors) as parts,
        closing(Api(load_kubeconfig(parts.kubeconfig), "default")) as api,
    ):
        for name, connector in (("log", PodLogs), ("exec", PodExec)):
            connectors["", "v1", "pods", name] = connector(parts.registry, SystemClock())
        group = {"kind": "Group", "name": "federation:system:masters", "apiGroup": "rbac.authorization.k8s.io"}
        role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
        api.create("clusterrolebindings", {"metadata": {"name": "hosts"}, "subjects": [group], "roleRef": role})
        yield parts, api


@pytest.fixture(scope="module")
def east(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Parts, Api]]:
    yield from serve_pods(tmp_path_factory.mktemp("east"))


@pytest.fixture(scope="module")
def west(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Parts, Api]]:
    yield from serve_pods(tmp_path_factory.mktemp("west"))


@pytest.fixture(scope="module")
def kubeconfig(
    east: tuple[Parts, Api], west: tuple[Parts, Api], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Return the kubeconfig of a host whose administrator administers the members as well."""
    for (_, api), pods in ((east, ("web-1", "web-2")), (west, ("web-1",))):
        selector = {"selector": {"matchLabels": LABELS}}
        template = {"template": {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS}}}
        api.create("deployments", {"metadata": {"name": "web"}, "spec": {"replicas": 2, **selector, **template}})
        for pod in pods:
            spec = {"containers": CONTAINERS, "nodeName": "node-1"}
            api.create("pods", {"metadata": {"name": pod, "labels": LABELS}, "spec": spec})
            api.patch("pods", pod, {"status": STATUS}, "status")
    pool = ClusterPool()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent = Connection(server=f"https://127.0.0.1:{listener.getsockname()[1]}", insecure=True, token="t")
        with api_server(tmp_path_factory.mktemp("host"), connectors={OURS: MemberProxy(pool)}) as host:
            host.run(host.registry.install_crds(crd_manifests()))
            for name, connection in (
                ("east", load_kubeconfig(east[0].kubeconfig)),
                ("west", load_kubeconfig(west[0].kubeconfig)),
                ("lost", Connection(server="https://127.0.0.1:1", insecure=True, token="t")),
            ):
                pool.set_connection(name, connection)
                host.run(join(host, name))
            pool.set_connection("silent", silent)
            eventually(lambda: fedctl(host.kubeconfig, "get", "pods", "-C", "east").exit_code == 0)
            yield host.kubeconfig
            host.run(pool.close())


async def join(host: Parts, name: str) -> None:
    cluster = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": {"name": name}}
    spec = {"apiEndpoint": f"https://{name}", "secretRef": {"name": name}}
    await LocalClient(host.registry).create(FEDERATED_CLUSTERS, {**cluster, "spec": spec})


def fedctl(kubeconfig: Path, *arguments: str) -> Result:
    command, *rest = arguments
    return CliRunner().invoke(app, [command, "--kubeconfig", str(kubeconfig), "--timeout", "30", *rest])


def both(kubeconfig: Path, *arguments: str) -> str:
    """Return what a command prints about the two members that answer."""
    command, *rest = arguments
    done = fedctl(kubeconfig, command, "-C", "east,west", *rest)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def test_pods_of_all_members_are_one_table_and_a_lost_member_is_reported(kubeconfig: Path) -> None:
    done = fedctl(kubeconfig, "get", "pods")
    assert [line.split()[:5] for line in done.stdout.splitlines()] == [
        ["CLUSTER", "NAME", "READY", "STATUS", "RESTARTS"],
        ["east", "web-1", "1/1", "Running", "0"],
        ["east", "web-2", "1/1", "Running", "0"],
        ["west", "web-1", "1/1", "Running", "0"],
    ]
    assert done.exit_code == 3
    assert re.fullmatch(r"fedctl: lost: https://127.0.0.1:1: no connection \(.*\)\n", done.stderr)


def test_no_answer_at_all_is_an_error(kubeconfig: Path) -> None:
    done = fedctl(kubeconfig, "get", "pods", "-C", "silent", "--timeout", "0.3")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", SILENT)


def test_wide_output_has_more_columns_and_all_namespaces_one_more(kubeconfig: Path) -> None:
    heading = both(kubeconfig, "get", "pods", "-A", "-o", "wide").splitlines()[0].split()
    assert heading[:3] == ["CLUSTER", "NAMESPACE", "NAME"]
    assert "NODE" in heading


def test_a_name_is_listed_where_it_exists(kubeconfig: Path) -> None:
    assert both(kubeconfig, "get", "pod", "web-2", "-o", "name") == "east pod/web-2\n"
    assert both(kubeconfig, "get", "pod/web-1", "-o", "name") == "east pod/web-1\nwest pod/web-1\n"
    missing = fedctl(kubeconfig, "get", "deploy", "none", "-C", "east,west")
    assert (missing.exit_code, missing.stderr) == (1, "fedctl: no deployments.apps 'none' in 2 clusters\n")


def test_several_kinds_are_a_table_each_and_names_have_their_kind(kubeconfig: Path) -> None:
    pods, deployments = both(kubeconfig, "get", "pods,deploy").split("\n\n")
    assert [line.split()[:2] for line in pods.splitlines()] == [
        ["CLUSTER", "NAME"],
        ["east", "pod/web-1"],
        ["east", "pod/web-2"],
        ["west", "pod/web-1"],
    ]
    assert [line.split()[:2] for line in deployments.splitlines()[1:]] == [
        ["east", "deployment.apps/web"],
        ["west", "deployment.apps/web"],
    ]
    named = both(kubeconfig, "get", "deploy/web", "pod/web-2", "-o", "name")
    assert named == "east deployment.apps/web\nwest deployment.apps/web\neast pod/web-2\n"
    assert len(yaml.safe_load(both(kubeconfig, "get", "pods,deploy", "-o", "yaml"))["items"]) == 5


def test_a_kind_without_objects_is_left_out_and_a_missing_name_is_an_error(kubeconfig: Path) -> None:
    assert both(kubeconfig, "get", "jobs,deploy").splitlines()[1].split()[:2] == ["east", "deployment.apps/web"]
    nothing = fedctl(kubeconfig, "get", "jobs,cronjobs", "-C", "east,west")
    assert (nothing.exit_code, nothing.stderr) == (
        0,
        "fedctl: no jobs, cronjobs in namespace default in 2 clusters\n",
    )
    missing = fedctl(kubeconfig, "get", "pod", "web-1", "none", "-C", "east,west")
    assert (missing.exit_code, missing.stderr) == (1, "fedctl: no pods 'none' in 2 clusters\n")
    assert "web-1" in missing.stdout
    watched = fedctl(kubeconfig, "get", "pods,jobs", "-w")
    assert watched.exit_code == 2


def test_documents_say_which_member_has_each_object(kubeconfig: Path) -> None:
    found = orjson.loads(both(kubeconfig, "get", "pods", "-l", "app=web", "-o", "json"))
    assert [item["metadata"]["annotations"][names.MEMBER_CLUSTER] for item in found["items"]] == [
        "east",
        "east",
        "west",
    ]
    one = yaml.safe_load(both(kubeconfig, "get", "pod", "web-2", "-o", "yaml"))
    assert (one["kind"], one["metadata"]["name"], "managedFields" in one["metadata"]) == ("Pod", "web-2", False)


def test_a_selector_without_a_match_is_no_error(kubeconfig: Path) -> None:
    done = fedctl(kubeconfig, "get", "pods", "-l", "app=none", "-C", "west")
    assert (done.exit_code, done.stdout, done.stderr) == (
        0,
        "",
        "fedctl: no pods in namespace default in cluster west\n",
    )


def test_a_cluster_that_has_not_joined_is_named(kubeconfig: Path) -> None:
    done = fedctl(kubeconfig, "get", "pods", "-C", "north")
    assert done.exit_code == 1
    assert done.stderr.startswith("fedctl: north: has no client: it is not joined")


def test_an_unknown_kind_is_named(kubeconfig: Path) -> None:
    error = fedctl(kubeconfig, "get", "wheels", "-C", "east").exception
    assert isinstance(error, ConfigurationError)
    assert "no kind 'wheels'" in str(error)


def test_a_user_without_rights_in_the_member_is_told_once(kubeconfig: Path, tmp_path: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] |= {"as": "system:serviceaccount:default:nobody"}
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    done = fedctl(path, "get", "pods", "-C", "east,west")
    assert done.exit_code == 1
    assert done.stderr.startswith("fedctl: east, west: ")
    assert "system:serviceaccount:default:nobody" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_description_has_fields_and_events(kubeconfig: Path, east: tuple[Parts, Api]) -> None:
    pod = east[1].get("pods", "web-2")
    about = {"kind": "Pod", "namespace": "default", "name": "web-2", "uid": pod["metadata"]["uid"], "apiVersion": "v1"}
    text = {"reason": "Pulled", "message": "image is present", "type": "Normal", "source": {"component": "kubelet"}}
    east[1].create("events", {"metadata": {"name": "pulled"}, "involvedObject": about, **text})
    found = both(kubeconfig, "describe", "pod", "web-2")
    assert "Name:            web-2\n" in found
    assert "      Image:  nginx:1.27\n" in found
    assert "Normal  Pulled  " in found
    assert found.count("Cluster:") == 1


def test_logs_say_where_each_line_is_from(kubeconfig: Path) -> None:
    lines = both(kubeconfig, "logs", "deployment/web", "--tail", "1").splitlines()
    assert [line.partition("] ")[0] for line in lines] == ["[east/web-1", "[east/web-2", "[west/web-1"]
    assert both(kubeconfig, "logs", "web-2", "--tail", "1").startswith("nginx of web-2 on node-1: alive ")
    by_label = both(kubeconfig, "logs", "-l", "app=web", "--tail", "1", "--no-prefix").splitlines()
    assert [line[:9] for line in by_label] == ["nginx of "] * 3


def test_problems_of_logs_name_the_pod(kubeconfig: Path) -> None:
    done = fedctl(kubeconfig, "logs", "web-2", "-C", "east", "-c", "none")
    assert done.exit_code == 3
    assert done.stderr == "fedctl: east/web-2: container none is not valid for pod web-2\n"


def test_a_command_runs_in_every_pod(kubeconfig: Path) -> None:
    lines = both(kubeconfig, "exec", "deployment/web", "--all", "--", "hostname").splitlines()
    assert sorted(lines) == ["[east/web-1] web-1", "[east/web-2] web-2", "[west/web-1] web-1"]


def test_a_command_runs_in_one_cluster_only_if_that_is_clear(kubeconfig: Path) -> None:
    error = fedctl(kubeconfig, "exec", "deployment/web", "-C", "east,west", "--", "ls").exception
    assert str(error) == "deployment/web runs in east, west; choose one with -C CLUSTER, or --all for every pod"
    done = fedctl(kubeconfig, "exec", "deployment/web", "-C", "west", "--", "hostname")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "web-1\n", "fedctl: in west/web-1\n")


def test_the_exit_code_is_that_of_the_command(kubeconfig: Path) -> None:
    done = fedctl(kubeconfig, "exec", "web-2", "-C", "east", "--", "sh", "-c", "exit 7")
    assert (done.exit_code, done.stderr) == (7, "")


def test_standard_input_is_passed_on(kubeconfig: Path) -> None:
    command = [*FEDCTL, "exec", "--kubeconfig", str(kubeconfig), "web-2", "-C", "east", "-i"]
    done = subprocess.run([*command, "--", "cat"], input=b"x" * 100_000, capture_output=True, check=True, timeout=60)
    assert done.stdout == b"x" * 100_000


def test_a_terminal_is_passed_on(kubeconfig: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*FEDCTL, "exec", "--kubeconfig", str(kubeconfig), "web-2", "-C", "east", "-it"]
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    with subprocess.Popen(
        [*command, "--", "sh"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        os.write(ours, b"hostname\rexit 5\r")
        assert process.wait(60) == 5
        assert b"web-2\r\n" in os.read(ours, 4096)
    os.close(ours)


def test_members_without_a_metrics_server_are_reported(kubeconfig: Path) -> None:
    done = fedctl(kubeconfig, "top", "nodes", "-C", "east,west")
    assert done.exit_code == 1
    assert done.stderr == "fedctl: east, west: serves no metrics of nodes; a metrics server is needed there\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("get", "pods", "web-1", "-A"), "NAME excludes --selector and --all-namespaces"),
        (("logs",), "give either POD, KIND/NAME or --selector"),
        (("logs", "web-1", "--since", "soon"), "--since"),
        (("exec", "web-1", "--all", "-i", "--", "ls"), "--all excludes --stdin and --tty"),
        (("top", "wheels"), "give pods or nodes"),
    ],
)
def test_wrong_usage_is_explained(kubeconfig: Path, arguments: tuple[str, ...], message: str) -> None:
    done = fedctl(kubeconfig, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_watch_prints_changes_of_all_members(
    kubeconfig: Path, east: tuple[Parts, Api], west: tuple[Parts, Api]
) -> None:
    command = [*FEDCTL, "get", "configmaps", "--kubeconfig", str(kubeconfig), "-C", "east,west"]
    east[1].create("configmaps", {"metadata": {"name": "first", "labels": {"seen": "yes"}}})
    process = subprocess.Popen([*command, "-l", "seen=yes", "-w"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = (tuple(line.split()[:2]) for line in process.stdout)
        assert [next(lines), next(lines)] == [("CLUSTER", "NAME"), ("east", "first")]
        west[1].create("configmaps", {"metadata": {"name": "second", "labels": {"seen": "yes"}}})
        assert next(lines) == ("west", "second")
        east[1].delete("configmaps", "first")
        assert next(lines) == ("east", "first")
    finally:
        process.kill()
        process.communicate()
