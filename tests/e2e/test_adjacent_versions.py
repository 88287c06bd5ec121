"""A rolling update: a control plane of the previous version and one of this version on the same PostgreSQL.

The previous version is taken from the history of the checkout, and runs as a process of its own with the libraries of this
environment. Without that history the tests are skipped.
"""

import shutil
import subprocess
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path

import pytest

from tests.e2e.test_replicas import is_leader
from tests.support.federation import Federation, Kubectl, eventually, fedctl, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY
from tests.support.postgres import PostgresServer
from tests.support.sources import ROOT

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow("control planes of two versions"),
    pytest.mark.postgres,
    pytest.mark.xdist_group("adjacentversions"),
]
PREVIOUS = "d99591058eba6be3dcda3274c486a7dd8c7e444e"
"""The version that users run today. A release sets it to the commit of the release before."""
PARTS = ("federation", "plugins", "migrations", "examples", "pyproject.toml")


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes of the previous version."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("the previous version is taken from the history of a checkout")
    archive = subprocess.run([git, "archive", PREVIOUS, *PARTS], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"the history of this checkout ends after {PREVIOUS}")
    folder = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder)  # our own history; Python 3.11.2 has no filters
    install_metadata(folder)
    entry = folder / "federation" / "cli" / "entry.py"
    if "__main__" not in (text := entry.read_text()):  # it was a console script only
        entry.write_text(f"{text}\n\nmain()\n")
    return {"PYTHONPATH": f"{folder}:{folder / 'plugins'}", "PYTHONSAFEPATH": "1"}


def install_metadata(folder: Path) -> None:
    """Describe the version in the folder as an installed package: its scheduler plugins are entry points."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    package = folder / f"{project['name']}-{project['version']}.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    (package / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def database() -> Iterator[str]:
    with PostgresServer() as server:
        yield server.create_database()


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Kubectl]:
    with free_clusters(tmp_path / "clusters", 1) as clusters:
        yield Kubectl(clusters[0])


def placed(member: Kubectl) -> int:
    found = member.api().find("deployments", "web")
    return found["spec"]["replicas"] if found else 0


def writes(member: Kubectl) -> int:
    """Return how often the spec was changed in the member."""
    return int(member.api().get("deployments", "web")["metadata"]["generation"])


def decisions(server: Federation) -> int:
    events = server.api().list("events", fieldSelector="involvedObject.name=web,reason=Scheduled")
    return sum(event.get("count") or 1 for event in events["items"])


def test_replicas_are_replaced_by_a_new_version_and_back(
    tmp_path: Path, previous: dict[str, str], database: str, member: Kubectl
) -> None:
    """Old leads; new joins, and leads when old stops; old joins again, and leads when new stops."""
    url = {"FEDERATION_STORE_URL": database}
    with closing(start_serve(tmp_path / "old", **url, **previous)) as old:
        fedctl("join", "frankfurt", "--kubeconfig", str(member.kubeconfig), KUBECONFIG=str(old.kubectl.kubeconfig))
        old.kubectl.apply(POLICY, DEPLOYMENT)
        old.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
        with closing(start_serve(tmp_path / "new", **url)) as new:
            assert is_leader(old)
            assert not is_leader(new)
            new.kubectl("label", "deploy/web", "team=shop")
            assert old.kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.labels.team}") == "shop"
            new.kubectl("scale", "deploy/web", "--replicas=5")
            eventually(lambda: placed(member), lambda seen: seen == 5, what="the old version delivers")
            new.kubectl("rollout", "status", "deploy/web", "--timeout=90s")
            before = writes(member)

            assert old.stop() == 0
            eventually(lambda: is_leader(new), bool, what="the new version leads")
            new.kubectl("scale", "deploy/web", "--replicas=6")
            eventually(lambda: placed(member), lambda seen: seen == 6, what="the new version delivers")
            assert writes(member) == before + 1, "the new version changes only what a user changed"

            with closing(start_serve(tmp_path / "old", **url, **previous)) as again:
                assert new.stop() == 0
                eventually(lambda: is_leader(again), bool, what="the old version leads again")
                again.kubectl("scale", "deploy/web", "--replicas=7")
                eventually(lambda: placed(member), lambda seen: seen == 7, what="the old version delivers again")
                assert writes(member) == before + 2
                assert decisions(again) == 1, "no version repeats the event of an unchanged placement"
