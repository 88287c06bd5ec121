"""A member that hangs: deletions end without it, it leaves by force, and what it holds is cleaned up when it is back."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.federation import Federation, eventually, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY, Member, assert_works

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Federation]:
    with closing(start_serve(tmp_path / "host")) as running:
        running.kubectl.apply(POLICY)
        yield running


@pytest.fixture
def members(fed: Federation, tmp_path: Path) -> Iterator[dict[str, Member]]:
    """Join two clusters, each in a process of its own."""
    with ExitStack() as stack:
        found = {}
        for name in ("frankfurt", "oslo"):
            (kubeconfig,) = stack.enter_context(free_clusters(tmp_path / name, 1))
            found[name] = Member(fed, name, kubeconfig)
            found[name].join(kubeconfig)
        fed.kubectl.apply(DEPLOYMENT)
        for member in found.values():
            assert_works(member)
        yield found


@contextmanager
def hanging(directory: Path) -> Iterator[None]:
    """Stop the process of the cluster with this state directory for the block, so that its connections hang."""
    process = next(child for child in psutil.Process().children() if str(directory) in child.cmdline())
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def test_a_deletion_ends_without_a_hanging_member(fed: Federation, members: dict[str, Member], tmp_path: Path) -> None:
    oslo = members["oslo"]
    with hanging(tmp_path / "oslo"):
        fed.kubectl("delete", "deploy", "web", "--timeout=50s")
        assert members["frankfurt"].kubectl("get", "deploy", "web", "--ignore-not-found") == ""
        row = next(line for line in oslo.fedctl("leftovers").splitlines() if line.startswith("oslo"))
        assert row.split()[1:4] == ["Deployment", "default/web", "SourceDeleted"]
        assert "is deleted" in row
    eventually(lambda: oslo.fedctl("leftovers"), lambda seen: "nothing is left" in seen, timeout_s=120)
    assert oslo.kubectl("get", "deploy", "web", "--ignore-not-found") == ""


def test_a_lost_member_leaves_by_force_and_is_cleaned_up_when_it_joins_again(
    fed: Federation, members: dict[str, Member], tmp_path: Path
) -> None:
    oslo = members["oslo"]
    with hanging(tmp_path / "oslo"):
        refused = oslo.fedctl("unjoin", "oslo", "--timeout", "3", check=False)
        assert "--force --reason TEXT" in refused
        assert "--force and --reason TEXT belong together" in oslo.fedctl("unjoin", "oslo", "--force", check=False)
        printed = oslo.fedctl("unjoin", "oslo", "--force", "--reason", "the building burnt down")
        assert "fedctl leftovers --cluster oslo" in printed
        assert "oslo" not in oslo.fedctl("clusters")
        rows = oslo.fedctl("leftovers", "--cluster", "oslo")
        assert "default/web" in rows
        assert "ClusterRemoved" in rows
        fed.kubectl("delete", "deploy", "web", "--timeout=50s")
    assert oslo.runs_web()
    oslo.join(oslo.kubectl.kubeconfig)
    eventually(lambda: oslo.fedctl("leftovers"), lambda seen: "nothing is left" in seen, timeout_s=120)
    assert oslo.kubectl("get", "deploy", "web", "--ignore-not-found") == ""
