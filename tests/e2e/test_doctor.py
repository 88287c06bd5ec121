"""`fedctl doctor` and `fedctl support-bundle` on a federation alone: a member stops, and both report on all objects."""

import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from federation.apimachinery.interpreter import slow_build
from tests.support.federation import Federation, eventually, fedctl, federation

pytestmark = [pytest.mark.e2e, pytest.mark.slow("a federation of its own"), pytest.mark.xdist_group("doctor")]
SECRET = "correct-horse-battery-staple"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with federation(tmp_path_factory.mktemp("doctor") / "state", members=2) as started:
        yield started


DATABASE = """
apiVersion: core.kubeadmiral.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: data}
spec:
  schedulingMode: Divide
  placement: [{cluster: member-1}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: data, labels: {kubeadmiral.io/propagation-policy-name: p}}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {a: db}}
  template: {metadata: {labels: {a: db}}, spec: {containers: [{name: c, image: nginx}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
"""


def test_what_would_start_on_empty_volumes_is_listed_with_the_way_and_the_word(running: Federation) -> None:
    kubeconfig = str(running.directory / "kubeconfig")

    def data(*more: str) -> subprocess.CompletedProcess[str]:
        return fedctl("doctor", "--data", "--kubeconfig", kubeconfig, *more, check=False)

    running.kubectl("create", "namespace", "data")
    running.kubectl("apply", "-f", "-", stdin=DATABASE)
    safe = eventually(data, lambda done: "1 workload with volumes" in done.stdout, what="the database is placed")
    assert (safe.returncode, "nothing would start empty" in safe.stdout) == (0, True)

    moved = '{"spec":{"placement":[{"cluster":"member-2"}],"failover":{"mode":"Auto"}}}'
    running.kubectl("patch", "propagationpolicy", "p", "-n", "data", "--type", "merge", "-p", moved)
    found = eventually(data, lambda done: " held" in done.stdout and "fedctl approve" in done.stdout, what="a hold")
    assert found.returncode == 1
    assert "the cluster is lost or drained" in found.stdout
    assert "its policy says failover.mode: Auto (policy data/p)" in found.stdout
    listed = json.loads(data("-o", "json").stdout)
    assert [(each["object"], each["cluster"], each["answer"]) for each in listed] == [
        ("StatefulSet data/db", "member-1", "Held"),
        ("StatefulSet data/db", "member-1", "StartsEmpty"),
    ]
    running.kubectl("delete", "namespace", "data", "--wait=false")
    eventually(data, lambda done: "0 workloads" in done.stdout, what="the database is gone")


def test_findings_name_what_to_do_and_decide_the_exit_code(running: Federation) -> None:
    kubeconfig = str(running.directory / "kubeconfig")
    healthy = fedctl("doctor", "--kubeconfig", kubeconfig)
    assert "ok      members       all are ready" in healthy.stdout
    # Secrets are stored as plain text; and the interpreter may be a slow build.
    expected = "0 errors, 2 warnings\n" if slow_build() else "0 errors, 1 warning\n"
    assert healthy.stdout.endswith(expected)

    fedctl("sim", "stop", "member-2", "--dir", str(running.directory))
    sick = eventually(
        lambda: fedctl("doctor", "--kubeconfig", kubeconfig, check=False),
        lambda done: done.returncode == 1,
        what="the doctor finds the member that does not answer",
    )
    assert "member member-2: Ready is Unknown (ClusterNotReachable" in sick.stdout
    assert "-> check that its API server answers" in sick.stdout
    found = json.loads(fedctl("doctor", "--kubeconfig", kubeconfig, "-o", "json", check=False).stdout)
    assert found[0]["level"] == "error"


def test_a_support_bundle_has_no_secret_and_is_private(running: Federation, tmp_path: Path) -> None:
    kubeconfig, file, log = str(running.directory / "kubeconfig"), tmp_path / "bundle.tar.gz", tmp_path / "log"
    running.kubectl("create", "secret", "generic", "db", f"--from-literal=password={SECRET}")
    running.kubectl("annotate", "secret", "db", f"kubeadmiral.io/note={SECRET}")
    log.write_text(f"cannot log in with {SECRET}\n")
    printed = fedctl("support-bundle", str(file), "--log", str(log), "--kubeconfig", kubeconfig).stdout
    assert "without values of Secrets" in printed
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        texts = {
            member.name.removeprefix("support-bundle/"): (archive.extractfile(member) or archive).read().decode()  # type: ignore[union-attr]  # files only
            for member in archive
        }
    assert {"about.json", "doctor.json", "metrics.txt", "readyz.txt", "decisions.json", "serve.log"} <= texts.keys()
    assert [each["metadata"]["name"] for each in json.loads(texts["objects/federatedclusters.json"])]
    assert not [name for name, text in texts.items() if SECRET in text]
    assert texts["serve.log"] == "cannot log in with ***\n"
    again = fedctl("support-bundle", str(file), "--kubeconfig", kubeconfig, check=False)
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
