"""docs/migration-kubeadmiral.md: a new host takes over the members of an old one, and the old one can take them back.

The old host is of this project, and its member objects carry the same label as KubeAdmiral's.
"""

from contextlib import closing
from pathlib import Path

import pytest

from tests.support.federation import Federation, Kubectl, eventually, fedctl, free_clusters, start_serve
from tests.support.joining import DEPLOYMENT, POLICY

pytestmark = [pytest.mark.e2e, pytest.mark.slow("two hosts"), pytest.mark.xdist_group("migration")]
CLAIM = "kubeadmiral.io/federated-cluster-uid"


def pods(member: Kubectl) -> set[str]:
    return set(member.api().names("pods", labelSelector="app=web"))


def claim(member: Kubectl, value: str) -> None:
    """Write the claim of a host, or with a hyphen remove it."""
    member("annotate", "--overwrite", "namespace", "kube-admiral-system", f"{CLAIM}{value}")


def apply(host: Federation, replicas: int) -> None:
    host.kubectl.apply(POLICY, {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": replicas}})
    host.kubectl("rollout", "status", "deploy/web", "--timeout=90s")


def test_a_new_host_takes_over_running_workloads_and_the_old_one_takes_them_back(tmp_path: Path) -> None:
    with free_clusters(tmp_path / "clusters", 1) as clusters:
        member = Kubectl(clusters[0])
        with closing(start_serve(tmp_path / "old")) as old:
            join = ("join", "east", "--kubeconfig", str(clusters[0]))
            fedctl(*join, KUBECONFIG=str(old.kubectl.kubeconfig))
            apply(old, 4)
            uid = old.kubectl("get", "fcluster", "east", "-o", "jsonpath={.metadata.uid}")
        running = pods(member)
        assert len(running) == 4

        with closing(start_serve(tmp_path / "new")) as new:
            refused = fedctl(*join, check=False, KUBECONFIG=str(new.kubectl.kubeconfig))
            assert "belongs to another federation" in refused.stderr
            claim(member, "-")
            fedctl(*join, KUBECONFIG=str(new.kubectl.kubeconfig))
            apply(new, 4)
            assert pods(member) == running, "no pod was restarted"
            new.kubectl("scale", "deploy/web", "--replicas=5")
            eventually(lambda: len(pods(member)), lambda count: count == 5, what="the new host's replicas")

        claim(member, f"={uid}")
        with closing(start_serve(tmp_path / "old")) as old:
            eventually(lambda: pods(member) <= running, bool, what="the old host's replicas")
            old.kubectl("wait", "--for=condition=Ready", "fcluster/east", "--timeout=60s")
