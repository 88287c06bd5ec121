"""Commands that foresee: a mistaken name is an error with the nearest one, and a change of nothing is none."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.federation import Federation, fedctl, run_fedctl
from tests.support.manifests import a_deployment, a_policy
from tests.support.shared import new_namespace

pytestmark = [pytest.mark.e2e, pytest.mark.slow("commands of fedctl"), pytest.mark.xdist_group("shared")]
_GIT = ("git", "-c", "user.email=user@example.com", "-c", "user.name=user")


@pytest.fixture
def fed(shared_federation: Federation) -> Federation:
    """The federation that others use, too: nothing here changes it."""
    return shared_federation


@pytest.fixture(scope="module")
def folder(shared_federation: Federation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose manifests are applied, with a branch `main`, records of a decision, and a script."""
    found = tmp_path_factory.mktemp("names")
    namespace = new_namespace(shared_federation, "orders")
    (found / "deploy").mkdir()
    objects = [a_policy({"member-1": 1}), a_deployment("web", 2)]
    for each in objects:
        each["metadata"]["namespace"] = namespace
        (found / "deploy" / f"{each['kind']}.json").write_text(json.dumps(each))
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run([*_GIT, *command], cwd=found, check=True, capture_output=True)
    shared_federation.kubectl("apply", "-f", str(found / "deploy"))
    shared_federation.kubectl("wait", "--for=condition=Available", "deployment/web", "-n", namespace)
    kubeconfig = str(shared_federation.kubectl.kubeconfig)
    fedctl("replay", "--export", str(found / "day.records"), KUBECONFIG=kubeconfig)
    (found / "cordon.yaml").write_text("end: 1m\nsteps: [{at: 1s, cordon: membr-1}]\n")
    (found / "dies.yaml").write_text("end: 1m\nsteps: [{at: 1s, fault: clusterDies, cluster: membr-1}]\n")
    (found / "namespace").write_text(namespace)
    return found


def run(fed: Federation, folder: Path, arguments: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    namespace = (folder / "namespace").read_text()
    wanted = [each.format(namespace=namespace) for each in arguments]
    environment = {**os.environ, "KUBECONFIG": str(fed.kubectl.kubeconfig)}
    return run_fedctl(wanted, environment=environment, folder=folder)


@pytest.mark.parametrize(
    ("command", "near"),
    [
        ("plan -f deplpy", "deploy"),
        ("plan -f deploy -n {namespace}x", "{namespace}"),
        ("plan --cluster-down membr-1", "member-1"),
        ("plan --taint membr-1=a=b:NoExecute", "member-1"),
        ("plan --label-cluster membr-1=a=b", "member-1"),
        ("plan --replicas deployment/wbe=3 -n {namespace}", "web"),
        ("plan --replicas deployment/web=3 -n {namespace}x", "{namespace}"),
        ("plan --delete deployment/wbe -n {namespace}", "web"),
        ("plan --delete deploymnt/web -n {namespace}", "deployment"),
        ("review --base main deplpy", "deploy"),
        ("review --base mian deploy", "main"),
        ("review --base main --head HEDA deploy", "HEAD"),
        ("review --before deploy --after deplpy", "deploy"),
        ("review --base main deploy -n {namespace}x", "{namespace}"),
        ("replay --from day.record", "day.records"),
        ("replay -n {namespace}x", "{namespace}"),
        ("replay --from day.records --without-cluster membr-1", "member-1"),
        ("replay --from day.records --add-cluster membr-1", "member-1"),
        ("replay -f deplpy", "deploy"),
        ("twin -f cordn.yaml", "cordon.yaml"),
        ("twin -f cordon.yaml", "member-1"),
        ("twin -f dies.yaml", "member-1"),
        ("drain membr-1 --dry-run", "member-1"),
        ("rebalance deployment/wbe -n {namespace} --dry-run", "web"),
        ("rebalance deploymnt/web -n {namespace} --dry-run", "deployment"),
        ("rebalance deployment/web -n {namespace}x --dry-run", "{namespace}"),
    ],
)
def test_a_mistaken_name_is_an_error_with_the_nearest_one(
    fed: Federation, folder: Path, command: str, near: str
) -> None:
    done = run(fed, folder, command.split())
    named = near.format(namespace=(folder / "namespace").read_text())
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"did you mean {named}?" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        "plan -f deploy",
        "plan --replicas deployment/web=2 -n {namespace}",
        "review --base main deploy",
        "review --before deploy --after deploy",
        "rebalance deployment/web -n {namespace} --dry-run",
    ],
)
def test_a_change_of_nothing_says_that_nothing_changes(fed: Federation, folder: Path, command: str) -> None:
    done = run(fed, folder, command.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing changes" in done.stdout.lower()
