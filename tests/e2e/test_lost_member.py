"""A member that hangs: deletions end without it, it leaves by force, and what it holds is cleaned up when it is back."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support.federation import Federation, eventually, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY, Member, assert_works, hanging

pytestmark = [pytest.mark.e2e, pytest.mark.slow("a member hangs"), pytest.mark.xdist_group("lost-member")]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lost-member")


@pytest.fixture(scope="module")
def fed(directory: Path) -> Iterator[Federation]:
    with pytest.MonkeyPatch.context() as environment:
        # Requests to a hanging member wait for it; the default is 10 s.
        environment.setenv("FEDERATION_MEMBER_REQUEST_TIMEOUT_S", "4")
        running = start_serve(directory / "host")
    with closing(running):
        running.kubectl.apply(POLICY)
        yield running


@pytest.fixture(scope="module")
def joined(fed: Federation, directory: Path) -> Iterator[dict[str, Member]]:
    """Join two clusters, each in its own process. Every test leaves both of them joined."""
    with free_clusters(directory / "clusters", 2) as kubeconfigs:
        found = {}
        for name, kubeconfig in zip(("frankfurt", "oslo"), kubeconfigs, strict=True):
            found[name] = Member(fed, name, kubeconfig)
            found[name].join(kubeconfig)
        yield found


@pytest.fixture
def members(fed: Federation, joined: dict[str, Member]) -> dict[str, Member]:
    fed.kubectl.apply(DEPLOYMENT)
    for member in joined.values():
        assert_works(member)
    return joined


@contextmanager
def hanging_oslo(directory: Path) -> Iterator[None]:
    with hanging(directory / "clusters", "member-2"):
        yield


def test_a_deletion_ends_without_a_hanging_member(fed: Federation, members: dict[str, Member], directory: Path) -> None:
    oslo = members["oslo"]
    with hanging_oslo(directory):
        fed.kubectl("delete", "deploy", "web", "--timeout=90s")
        assert members["frankfurt"].kubectl("get", "deploy", "web", "--ignore-not-found") == ""
        row = next(line for line in oslo.fedctl("leftovers").splitlines() if line.startswith("oslo"))
        assert row.split()[1:4] == ["Deployment", "default/web", "SourceDeleted"]
        assert "is deleted" in row
    eventually(lambda: oslo.fedctl("leftovers"), lambda seen: "nothing is left" in seen, timeout_s=120)
    assert oslo.kubectl("get", "deploy", "web", "--ignore-not-found") == ""


def test_a_lost_member_leaves_by_force_and_loses_nothing_when_it_joins_again(
    fed: Federation, members: dict[str, Member], directory: Path
) -> None:
    oslo = members["oslo"]
    with hanging_oslo(directory):
        refused = oslo.fedctl("unjoin", "oslo", "--timeout", "3", check=False)
        assert "--force --reason TEXT" in refused
        assert "--force and --reason TEXT belong together" in oslo.fedctl("unjoin", "oslo", "--force", check=False)
        printed = oslo.fedctl("unjoin", "oslo", "--force", "--reason", "the building burnt down")
        assert "fedctl leftovers --cluster oslo" in printed
        assert "oslo" not in oslo.fedctl("clusters")
        rows = oslo.fedctl("leftovers", "--cluster", "oslo")
        assert "default/web" in rows
        assert "ClusterRemoved" in rows
        fed.kubectl("delete", "deploy", "web", "--timeout=90s")
    assert oslo.runs_web()
    oslo.join(oslo.kubectl.kubeconfig)
    eventually(lambda: oslo.fedctl("leftovers"), lambda seen: "Kept" in seen, timeout_s=120)
    assert oslo.runs_web()
    assert "kubeadmiral.io/managed" not in oslo.kubectl("get", "deploy", "web", "-o", "yaml")


def test_a_deletion_from_before_a_lost_member_left_deletes_nothing_when_it_joins_again(
    fed: Federation, members: dict[str, Member], directory: Path
) -> None:
    oslo = members["oslo"]
    ready = ("get", "federatedcluster", "oslo", "-o", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")
    with hanging_oslo(directory):
        # A deletion that was sent earlier would take effect once the member goes on.
        eventually(lambda: fed.kubectl(*ready), lambda seen: seen != "True", timeout_s=120)
        fed.kubectl("delete", "deploy", "web", "--timeout=90s")
        assert "SourceDeleted" in oslo.fedctl("leftovers", "--cluster", "oslo")
        oslo.fedctl("unjoin", "oslo", "--force", "--reason", "the building burnt down")
    oslo.join(oslo.kubectl.kubeconfig)
    eventually(
        lambda: oslo.fedctl("leftovers"), lambda seen: "Kept" in seen or "nothing is left" in seen, timeout_s=120
    )
    assert oslo.runs_web()
    assert "kubeadmiral.io/managed" not in oslo.kubectl("get", "deploy", "web", "-o", "yaml")
