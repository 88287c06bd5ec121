"""An application of 15 kinds is imported from a real cluster, moves to another and back, and survives a lost one."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from tests.kubernetes.cluster import Cluster, real_cluster
from tests.kubernetes.members.federation import RealFederation, real_federation
from tests.kubernetes.members.serving import Traffic
from tests.support.federation import eventually

pytestmark = [pytest.mark.real_time, pytest.mark.slow("an application moves between real clusters")]
HERE = Path(__file__).parent
APPLICATION, NEEDS = HERE / "application.yaml", HERE / "needs.yaml"
MONITORS = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "FederatedTypeConfig",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "sourceType": {
            "group": "monitoring.coreos.com",
            "version": "v1",
            "kind": "ServiceMonitor",
            "pluralName": "servicemonitors",
            "scope": "Namespaced",
        }
    },
}
STAYS = {"Role", "RoleBinding"}
"""They give rights, so they do not go along (docs/reference/applications.md)."""
EAST, WEST, LOST = "member-1", "member-2", "member-3"
PATIENCE = {"FEDERATION_FAILOVER_TOLERATION_S": "20", "FEDERATION_FAILOVER_SETTLE_S": "1"}
FAILOVER = {
    "mode": "Auto",
    "statePreservation": {"rules": [{"annotation": "example.com/ready", "jsonPath": "{.readyReplicas}"}]},
}


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    members = dict(zip((EAST, WEST), real, strict=False))
    for cluster in members.values():
        cluster.kubectl("apply", "-f", str(NEEDS))
        cluster.kubectl("wait", "--for=condition=Established", "crd/servicemonitors.monitoring.coreos.com")
    try:
        with real_federation(tmp_path_factory.mktemp("moved"), members, **PATIENCE) as running:
            yield running
    finally:
        for cluster in members.values():
            cluster.kubectl("delete", "-f", str(NEEDS), "--wait=false", "--ignore-not-found")


def _parts() -> list[tuple[str, str]]:
    """Return kind and name of each object of the application in its namespace."""
    found = [each for each in yaml.safe_load_all(APPLICATION.read_text()) if each["kind"] != "Namespace"]
    return [(each["kind"], each["metadata"]["name"]) for each in found]


def _pods(fed: RealFederation, member: str) -> str:
    return fed.member(member)("get", "pods", "-n", "store", "-o", "name")


def _missing_in(fed: RealFederation, member: str) -> list[tuple[str, str]]:
    kinds = ",".join(sorted({kind for kind, _ in _parts()}))
    there = fed.member(member).json("get", kinds, "-n", "store")["items"]
    present = {(each["kind"], each["metadata"]["name"]) for each in there}
    return [part for part in _parts() if part not in present]


def test_an_application_is_imported_and_moves_there_and_back_without_a_failed_request(fed: RealFederation) -> None:
    east = fed.member(EAST)
    east("apply", "-f", str(APPLICATION))
    east("rollout", "status", "deployment/web", "-n", "store", "--timeout=120s", timeout_s=130)
    before = _pods(fed, EAST)
    fed.kubectl("apply", "-f", str(NEEDS))
    fed.kubectl.apply(MONITORS)
    for name in fed.members:
        fed.join(name, "--update-credentials")
    with Traffic(fed.clusters, "store", "web") as traffic:
        imported = fed.fedctl("import", "--from-cluster", EAST, "namespace/store")
        assert "deployment/web imported from member-1" in imported
        assert _pods(fed, EAST) == before, "no pod was restarted"
        policy = '{"spec":{"placement":null,"maxClusters":1}}'
        fed.kubectl("patch", "propagationpolicy", "import-member-1", "-n", "store", "--type=merge", "-p", policy)
        for target, source in ((WEST, EAST), (EAST, WEST)):
            moved = fed.fedctl("migrate", "deployment/web", "-n", "store", "--to", target, "--leave-volumes")
            assert f"running: deployment/web in store: 3 in {target}" in moved
            assert fed.member(target)(
                "get", "pods", "-n", "store", "--field-selector=status.phase=Running", "-o", "name"
            )
            missing = [part for part in _missing_in(fed, target) if part[0] not in STAYS]
            assert not missing, f"{target} lacks {missing}"
            eventually(lambda source=source: _pods(fed, source), lambda seen: not seen, what=f"{source} is left")
    assert not traffic.failed, "\n".join(traffic.failed[:20])
    assert min(traffic.answered.values()) > 50, traffic.answered


def test_it_runs_elsewhere_with_its_state_after_its_cluster_is_lost(fed: RealFederation, tmp_path: Path) -> None:
    with ExitStack() as stack:
        lost = stack.enter_context(real_cluster(tmp_path / "lost"))
        lost.kubectl("apply", "-f", str(NEEDS))
        fed.clusters = {**fed.clusters, LOST: lost}
        fed.join(LOST)
        policy = {"spec": {"failover": FAILOVER}}
        patch = ("--type=merge", "-p", json.dumps(policy))
        fed.kubectl("patch", "propagationpolicy", "import-member-1", "-n", "store", *patch)
        fed.fedctl("migrate", "deployment/web", "-n", "store", "--to", LOST, "--leave-volumes", "--timeout", "70")
        fed.fedctl("migrate", "deployment/web", "-n", "store", "--end")
        assert lost.kubectl("get", "deployment/web", "-n", "store", "-o", "jsonpath={.status.readyReplicas}") == "3"
    there = eventually(lambda: _running_in(fed), bool, timeout_s=180, what="it runs elsewhere")
    web = fed.member(there).json("get", "deployment/web", "-n", "store")
    assert web["metadata"]["annotations"]["example.com/ready"] == "3"
    assert not [part for part in _missing_in(fed, there) if part[0] not in STAYS]
    with Traffic({there: fed.clusters[there]}, "store", "web") as traffic:
        eventually(lambda: traffic.answered[there], lambda seen: seen > 50, what="requests are answered")
    assert not traffic.failed, "\n".join(traffic.failed[:20])


def _running_in(fed: RealFederation) -> str:
    """Return the member that answers and has all replicas ready, "" for none."""
    ready = ("get", "deployment/web", "-n", "store", "--ignore-not-found", "-o", "jsonpath={.status.readyReplicas}")
    return next((name for name in (EAST, WEST) if fed.member(name)(*ready) == "3"), "")
