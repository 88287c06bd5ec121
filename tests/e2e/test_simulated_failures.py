"""`fedctl sim`: failures of the members of a running `fedctl up`, on real sockets and processes."""

import asyncio
import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from federation.simulator.control import send_command
from federation.simulator.failures import FailureCommand, Verb
from tests.support.federation import (
    PATIENCE_S,
    Federation,
    eventually,
    fedctl,
    federation,
    free_clusters,
    start_federation,
)

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("stops, kills and hangs members of a federation of its own"),
    pytest.mark.xdist_group("simulated-failures"),
]
_SILENT_S = 1.0


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with federation(tmp_path_factory.mktemp("failures") / "fed", members=2) as running:
        yield running


@pytest.fixture(autouse=True)
def _healthy(fed: Federation) -> Iterator[None]:
    """Let every test start with running members."""
    yield
    for name in fed.members:
        command(fed.directory / "members", Verb.START, name)


def sim(fed: Federation, *arguments: str, check: bool = True) -> str:
    """Return the output of `fedctl sim`, or what it prints on standard error without `check`."""
    done = fedctl("sim", *arguments, check=check, KUBECONFIG=str(fed.kubectl.kubeconfig))
    return done.stdout if check else done.stderr


def command(members: Path, verb: Verb, name: str = "") -> list[dict[str, Any]]:
    """Execute what `fedctl sim` executes, without the start of a process."""
    return asyncio.run(send_command(members, FailureCommand(verb, name)))


def state(fed: Federation, name: str) -> dict[str, Any]:
    (found,) = [each for each in command(fed.directory / "members", Verb.STATUS) if each["name"] == name]
    return found


def address(fed: Federation, name: str) -> tuple[str, int]:
    url = urlsplit(state(fed, name)["server"])
    assert url.hostname
    assert url.port
    return url.hostname, url.port


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_stopped_member_refuses_connections_and_comes_back_with_its_data(fed: Federation) -> None:
    member = fed.member("member-2")
    before = state(fed, "member-2")
    member.apply(config_map("kept"))
    assert "refuses connections" in sim(fed, "stop", "member-2")
    assert not psutil.pid_exists(before["pid"])
    assert "refused" in member.run("get", "configmap", "kept").stderr
    assert "member-2 is stopped" in sim(fed, "hang", "member-2", check=False)
    sim(fed, "start", "member-2")
    assert member("get", "configmap", "kept", "-o", "name").strip() == "configmap/kept"
    assert state(fed, "member-2")["server"] == before["server"]
    assert state(fed, "member-2")["state"] == "Running"


def test_a_member_starts_at_its_address_or_not_at_all(fed: Federation) -> None:
    """The control plane and users know its address, so another one would be a different failure."""
    place = address(fed, "member-2")
    sim(fed, "stop", "member-2")
    with socket.create_server(place):
        assert f"cannot listen on {place[0]}:{place[1]}" in sim(fed, "start", "member-2", check=False)
        assert state(fed, "member-2")["state"] == "Stopped"
    sim(fed, "start", "member-2")
    assert address(fed, "member-2") == place


def test_a_member_killed_by_hand_is_reported_and_starts_again(fed: Federation) -> None:
    psutil.Process(state(fed, "member-2")["pid"]).send_signal(signal.SIGKILL)
    seen = eventually(lambda: state(fed, "member-2"), lambda each: each["state"] == "Stopped")
    assert seen["detail"] == "killed by SIGKILL"
    rows = [line.split() for line in sim(fed, "status").splitlines()]
    assert [row[:2] for row in rows[1:]] == [["member-1", "Running"], ["member-2", "Stopped"]]
    assert json.loads(sim(fed, "status", "-o", "json"))[1]["pid"] is None
    sim(fed, "start", "member-2")
    fed.member("member-2")("get", "nodes")


def test_a_hanging_member_accepts_connections_and_never_answers(fed: Federation) -> None:
    member = fed.member("member-2")
    watch = member.popen("get", "configmaps", "--watch", "-o", "name")
    assert watch.stdout is not None
    printed = iter(watch.stdout.readline, "")
    try:
        next(printed)  # its list; what comes after it comes by the watch, which is open then
        member.apply(config_map("before-the-hang"))
        assert "configmap/before-the-hang\n" in printed
        sim(fed, "hang", "member-2")
        with socket.create_connection(address(fed, "member-2"), timeout=PATIENCE_S) as connection:
            connection.settimeout(_SILENT_S)
            connection.sendall(b"\x16\x03\x01")
            with pytest.raises(TimeoutError):
                connection.recv(1)
        assert watch.poll() is None, "its watches stay open"
        sim(fed, "start", "member-2")
        member.apply(config_map("after-the-hang"))
        assert "configmap/after-the-hang\n" in printed, "and go on afterwards"
    finally:
        watch.kill()
        watch.communicate()


def test_a_slow_member_answers_later(fed: Federation) -> None:
    assert "500ms later" in sim(fed, "slow", "member-2", "--latency", "500ms")
    started = time.monotonic()
    fed.member("member-2")("get", "--raw", "/readyz")
    assert time.monotonic() - started >= 0.5
    assert state(fed, "member-2")["detail"] == "0.5 s"


def test_a_flapping_member_stops_and_comes_back(fed: Federation) -> None:
    before = state(fed, "member-2")["pid"]
    sim(fed, "flap", "member-2", "--period", "1s", "--count", "2")
    assert state(fed, "member-2")["state"] in {"Flapping", "Running"}
    seen = eventually(lambda: state(fed, "member-2"), lambda each: each["state"] == "Running")
    assert seen["detail"] == "2 times back"
    assert seen["pid"] != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stop", "member-9"), 'no simulated member "member-9"; there are: member-1, member-2'),
        (("slow", "member-1", "--latency", "soon"), "--latency: 'soon' is not a duration"),
        (("slow", "member-1", "--latency", "0s"), "the latency must be more than 0"),
        (("flap", "member-1", "--period", "1ms"), "the period must be from 1 to 86400 s"),
    ],
)
def test_a_command_that_cannot_be_executed_is_refused(
    fed: Federation, arguments: tuple[str, ...], message: str
) -> None:
    assert message in " ".join(sim(fed, *arguments, check=False).split())
    assert state(fed, "member-1")["state"] == "Running"


def test_a_directory_without_running_members_is_refused(fed: Federation, tmp_path: Path) -> None:
    assert "is not a state directory" in sim(fed, "stop", "member-1", "--dir", str(tmp_path), check=False)
    (tmp_path / "members").mkdir()
    assert "no simulated members run in" in sim(fed, "stop", "member-1", "--dir", str(tmp_path), check=False)


def test_only_the_owner_of_the_state_directory_can_simulate_failures(fed: Federation) -> None:
    folder = fed.directory / "members"
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "control.sock").stat().st_mode & 0o177 == 0


def test_no_member_outlives_the_control_plane_not_even_a_hanging_one(tmp_path: Path) -> None:
    with closing(start_federation(tmp_path / "fed", members=1)) as fed:
        command(fed.directory / "members", Verb.HANG, "member-1")
        fed.kill()  # and assert that no process outlives it


def test_no_member_outlives_its_fleet_not_even_a_hanging_one(tmp_path: Path) -> None:
    with free_clusters(tmp_path / "clusters", 2):
        (hanging,) = command(tmp_path / "clusters", Verb.HANG, "member-2")
        fleet = psutil.Process(hanging["pid"]).parent()
        members = fleet.children()
        assert len(members) == 2
        fleet.kill()
        _, alive = psutil.wait_procs(members, timeout=PATIENCE_S)
        assert not alive


def test_nothing_is_lost_when_a_member_is_killed_and_comes_back(fed: Federation) -> None:
    """Replicas that are scaled while one member is dead arrive in it when it is back."""
    labels = {"app": "web"}
    fed.kubectl.apply(
        {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "everywhere", "namespace": "default"},
            "spec": {
                "schedulingMode": "Duplicate",
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                "tolerations": [{"operator": "Exists"}],
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
                },
            },
        },
    )

    def ready(name: str) -> tuple[int, int]:
        web = fed.api(member=name).find("deployments", "web") or {"spec": {}}
        return web["spec"].get("replicas", 0), web.get("status", {}).get("readyReplicas", 0)

    for name in fed.members:
        eventually(lambda name=name: ready(name), lambda seen: seen == (2, 2))  # type: ignore[misc]
    psutil.Process(state(fed, "member-2")["pid"]).send_signal(signal.SIGKILL)
    fed.api().patch("deployments", "web", {"spec": {"replicas": 3}}, "scale")
    eventually(lambda: ready("member-1"), lambda seen: seen == (3, 3))
    eventually(lambda: state(fed, "member-2"), lambda each: each["state"] == "Stopped")
    sim(fed, "start", "member-2")
    pods = fed.api(member="member-2").names("pods", labelSelector="app=web")
    assert len(pods) >= 2, "the member has its pods of before"
    eventually(lambda: ready("member-2"), lambda seen: seen == (3, 3))
    fed.api().delete("deployments", "web")
    fed.api().wait_gone("deployments", "web")
