"""A volume, its claim and a workload in three real members, deleted in the order of a tutorial's file: the volume first.

Kubernetes' own controllers bind the volume, protect it, and remove it in the members.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.members.federation import REGIONS, RealFederation, apply, real_federation
from tests.support.federation import eventually
from tests.support.manifests import a_deployment, a_policy

CORE = "core.kubeadmiral.io/v1alpha1"
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "tutorial"},
    "spec": {
        "storageClassName": "manual",
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
    },
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "tutorial", "namespace": "default"},
    "spec": {
        "storageClassName": "manual",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "3Gi"}},
    },
}


def _workload() -> dict[str, Any]:
    web = a_deployment("tutorial", replicas=1)
    web["spec"]["template"]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "tutorial"}}]
    return web


def _policy() -> dict[str, Any]:
    kinds = [("v1", "PersistentVolume"), ("v1", "PersistentVolumeClaim"), ("apps/v1", "Deployment")]
    selectors = [{"apiVersion": version, "kind": kind} for version, kind in kinds]
    policy = a_policy({}, name="everywhere", schedulingMode="Duplicate", resourceSelectors=selectors)
    del policy["metadata"]["namespace"]
    return {**policy, "kind": "ClusterPropagationPolicy"}


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory, real: list[Cluster]) -> Iterator[RealFederation]:
    with real_federation(tmp_path_factory.mktemp("volumes"), dict(zip(REGIONS, real, strict=True))) as running:
        yield running


def _phases(fed: RealFederation) -> list[str]:
    found = [fed.kubectl, *map(fed.member, fed.members)]
    return [each("get", "pv", "tutorial", "--ignore-not-found", "-o", "jsonpath={.status.phase}") for each in found]


def _waits(fed: RealFederation) -> str:
    events = ("get", "events", "-A", "--field-selector", "reason=DeletionWaits,involvedObject.kind=PersistentVolume")
    return fed.kubectl(*events, "-o", "jsonpath={.items[*].message}")


def test_a_volume_that_is_deleted_first_goes_after_its_claim(fed: RealFederation) -> None:
    apply(fed.kubectl, _policy(), VOLUME, CLAIM, _workload())
    eventually(lambda: _phases(fed), lambda seen: seen == ["Bound"] * 4, what="bound on the host and in the members")
    fed.kubectl("rollout", "status", "deploy/tutorial", "--timeout=90s")
    fed.kubectl("delete", "pv", "tutorial", "--wait=false")
    text = eventually(lambda: _waits(fed), bool, what="an event that says what the deletion waits for")
    assert "member-2: WaitingForRemoval (its finalizers [kubernetes.io/pv-protection] hold it there)" in text
    fed.kubectl("delete", "deploy/tutorial", "pvc/tutorial", "--timeout=90s")
    eventually(lambda: _phases(fed), lambda seen: seen == [""] * 4, what="no volume anywhere")
    assert fed.kubectl("get", "clusterfederatedobjects", "-o", "name").count("tutorial") == 0
