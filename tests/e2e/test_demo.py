"""The demo, `fedctl up` twice on the same directory, and the output of the commands."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import psutil
import pytest

from tests.support.federation import (
    FEDCTL,
    PATIENCE_S,
    Federation,
    Kubectl,
    fedctl,
    start_federation,
    start_serve,
    without_progress,
)
from tests.support.vectors import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow("the demo, several times"), pytest.mark.xdist_group("demo")]
Shown: TypeAlias = tuple[Path, "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes that use the wheel instead of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site-packages")
    return {"PYTHONPATH": str(folder / "site-packages"), "PYTHONSAFEPATH": "1"}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, installed: dict[str, str]) -> Shown:
    """A state directory on which the demo ran from the wheel, and what it printed."""
    directory = tmp_path_factory.mktemp("demo") / "state"
    return directory, fedctl("demo", "--once", "--dir", str(directory), **installed)


def test_the_wheel_has_everything_that_the_product_needs(installed: dict[str, str]) -> None:
    root = Path(installed["PYTHONPATH"])
    code = "import federation, federation_plugins; print(federation.__file__); print(federation_plugins.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **installed}, capture_output=True, text=True, check=True
    )
    assert all(Path(line).is_relative_to(root) for line in done.stdout.splitlines())
    for folder, pattern in (("migrations", "versions/*.py"), ("examples/quickstart", "*"), ("examples/workloads", "*")):
        packaged = root / "federation" / f"_{folder}"
        assert {file.name for file in packaged.glob(pattern)} == {file.name for file in (ROOT / folder).glob(pattern)}
    assert list(root.glob("federation-*.dist-info/licenses/LICENSE"))


def test_the_server_writes_its_directory_only(installed: dict[str, str], tmp_path: Path) -> None:
    """As in the image, whose root file system is read-only."""
    root = Path(installed["PYTHONPATH"])
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    home = tmp_path / "home"
    home.mkdir()
    environment = {**installed, "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(home), "TMPDIR": str(home)}
    with closing(start_serve(tmp_path / "state", arguments=["--log-format=json"], **environment)) as server:
        assert server.stop() == 0
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    assert not list(home.iterdir())


def test_the_demo_shows_replicas_in_every_member_and_further_commands(
    shown: Shown,
) -> None:
    directory, done = shown
    rows = {line.split("│")[1].strip(): line.split("│")[2:4] for line in done.stdout.splitlines() if "│" in line}
    numbers = {name: [int(cell) for cell in cells] for name, cells in rows.items()}
    assert numbers == {"member-1": [4, 4], "member-2": [2, 2], "member-3": [2, 2], "host (merged)": [8, 8]}
    assert "statefulset/db: member-1 (2/2 ready), member-2 (2/2 ready)" in done.stdout
    assert "job/import: member-3 (3/3 completed)" in done.stdout
    assert re.search(r"service/db: member-1 \(100\.[0-9.]+\), member-2 \(100\.[0-9.]+\)", done.stdout)
    assert f"export KUBECONFIG={directory / 'kubeconfig'}" in done.stdout
    for command in ("kubectl get deploy", "fedctl why deployment/nginx", "fedctl clusters"):
        assert command in done.stdout
    assert without_progress(done.stderr) == ""


def test_make_demo_runs_the_demo_once() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "demo", "ONCE=1", "DIR=/somewhere"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().endswith("fedctl demo --once --dir /somewhere")


def test_a_second_start_continues_where_the_first_stopped(shown: Shown) -> None:
    directory, _ = shown
    with closing(start_federation(directory)) as fed:
        deployment = fed.kubectl.json("get", "deploy", "nginx")
        assert deployment["status"]["readyReplicas"] == 8
        assert deployment["metadata"]["generation"] == 1
        pods = {member: pod_names(fed, member) for member in fed.members}
        assert {member: len(found) for member, found in pods.items()} == {"member-1": 4, "member-2": 2, "member-3": 2}
        versions = {member: resource_version(fed, member) for member in fed.members}
        endpoints = fed.kubectl("get", "fcluster", "-o", "jsonpath={.items[*].spec.apiEndpoint}").split()
        assert len(set(endpoints)) == 3
        assert fed.stop() == 0
    with closing(start_federation(directory)) as fed:
        fed.kubectl("rollout", "status", "deploy/nginx", "--timeout=90s")
        assert {member: pod_names(fed, member) for member in fed.members} == pods, "the very same pods"
        assert {member: resource_version(fed, member) for member in fed.members} == versions
        assert fed.kubectl("get", "fcluster", "-o", "jsonpath={.items[*].spec.apiEndpoint}").split() == endpoints


def pod_names(fed: Federation, member: str) -> list[str]:
    return sorted(p["metadata"]["name"] for p in fed.member(member).json("get", "pods", "-n", "default")["items"])


def resource_version(fed: Federation, member: str) -> str:
    return fed.member(member)("get", "deploy", "nginx", "-n", "default", "-o", "jsonpath={.metadata.resourceVersion}")


def test_up_logs_nothing_at_level_warning_and_exits_with_zero(tmp_path: Path) -> None:
    with closing(start_federation(tmp_path / "state", members=2)) as fed:
        fed.kubectl.apply(POLICY, DEPLOYMENT)
        fed.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
        with fed.kubectl.popen("get", "deploy", "-w") as watching:
            assert watching.stdout is not None
            watching.stdout.readline()
            assert fed.stop() == 0, "also with a client that watches"
        assert without_progress(fed.log) == ""


def test_logs_are_json_with_log_format_json(tmp_path: Path) -> None:
    arguments = ["--log-format", "json", "--log-level", "debug"]
    with closing(start_federation(tmp_path / "state", members=1, arguments=arguments)) as fed:
        fed.stop()
        lines = [json.loads(line) for line in fed.log.splitlines()]
    assert "control plane serves" in {line["event"] for line in lines}
    assert all(line["timestamp"] and line["level"] for line in lines)


def test_the_demo_reports_why_it_does_not_converge(tmp_path: Path) -> None:
    with closing(start_federation(tmp_path / "state")) as fed:
        taint = {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}}
        for member in fed.members:
            fed.kubectl("patch", "fcluster", member, "--type=merge", "-p", json.dumps(taint))
        # The decision is made before the demo begins, which has little time then.
        for file in sorted((ROOT / "examples" / "quickstart").glob("*.yaml")):
            fed.kubectl("apply", "-f", str(file))
        fed.kubectl("wait", "deployment/nginx", "--for=condition=Scheduled=False", f"--timeout={PATIENCE_S}s")
        fed.stop()
    done = fedctl("demo", "--once", "--timeout", "4", "--dir", str(tmp_path / "state"), check=False)
    assert done.returncode == 1
    lines = without_progress(done.stderr).splitlines()
    assert len(lines) == 1, done.stderr
    assert "did not converge in 4 s: 0 of 8 replicas ready, placed nowhere" in lines[0]
    assert "taint" in lines[0].lower()


def test_ctrl_c_ends_the_demo_with_success(tmp_path: Path) -> None:
    command = [*FEDCTL, "demo", "--dir", str(tmp_path / "state")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        printed = ""
        while "until Ctrl-C" not in printed:
            line = demo.stdout.readline()
            assert line, printed
            printed += line
        kubectl = Kubectl(tmp_path / "state" / "kubeconfig")
        assert kubectl("get", "deploy", "nginx", "-o", "jsonpath={.status.readyReplicas}") == "8"
        children = psutil.Process(demo.pid).children(recursive=True)
        assert children
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=PATIENCE_S)
    assert demo.returncode == 0
    assert without_progress(errors) == ""
    _, alive = psutil.wait_procs(children, timeout=PATIENCE_S)
    assert not alive


POLICY = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "everything", "namespace": "default"},
    "spec": {
        "schedulingMode": "Divide",
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
    },
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
        },
    },
}
