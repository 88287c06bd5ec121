"""Objects that Karmada or KubeAdmiral delivered, and signs that one of them still runs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.planning.federatedobject.imported import import_problem, to_source
from federation.planning.federatedobject.previoushosts import (
    PreviousHost,
    delivered_by,
    remaining_finalizers,
    signs_of_life,
)

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
KARMADA, KUBEADMIRAL = PreviousHost.KARMADA, PreviousHost.KUBEADMIRAL


def member_object(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "n", **metadata},
        "data": {},
    }


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, None),
        ({"labels": {"karmada.io/managed": "true"}}, KARMADA),
        ({"labels": {"work.karmada.io/name": "web-687f"}}, KARMADA),
        ({"annotations": {"resourcetemplate.karmada.io/uid": "1"}}, KARMADA),
        ({"labels": {names.MANAGED_LABEL: "true"}}, KUBEADMIRAL),
        ({"labels": {names.MANAGED_LABEL: "false"}}, None),
        ({"labels": {names.MANAGED_LABEL: "true"}, "annotations": {names.TEMPLATE_HASH: "1"}}, None),
        ({"labels": {"karmada.io/managed": "true"}, "annotations": {names.TEMPLATE_HASH: "1"}}, None),
    ],
)
def test_who_delivered_an_object(metadata: dict[str, Any], expected: PreviousHost | None) -> None:
    assert delivered_by(member_object(**metadata)) is expected


def test_an_object_of_kubeadmiral_can_be_imported_and_one_of_ours_cannot() -> None:
    labels = {names.MANAGED_LABEL: "true"}
    assert import_problem(member_object(labels=labels)) == ""
    ours = member_object(labels=labels, annotations={names.TEMPLATE_HASH: "1"})
    assert "a federation manages it already" in import_problem(ours)


def test_the_source_has_nothing_of_the_previous_control_plane() -> None:
    live = member_object(
        labels={"app": "a", "karmada.io/managed": "true", "propagationpolicy.karmada.io/permanent-id": "1"},
        annotations={"own": "1", "resourcetemplate.karmada.io/managed-labels": "app", "work.karmada.io/name": "x"},
    )
    metadata = to_source(live, "east", ("policy", "import-east"))["metadata"]
    assert metadata["labels"] == {"app": "a", "policy": "import-east"}
    assert set(metadata["annotations"]) == {"own", names.CONFLICT_RESOLUTION, names.CLUSTERS_TO_ADOPT}


def test_finalizers_of_either_remain() -> None:
    finalizers = ["example.com/keep", "karmada.io/work-controller", "kubeadmiral.io/sync-controller"]
    assert remaining_finalizers(member_object(finalizers=finalizers)) == finalizers[1:]
    assert remaining_finalizers(member_object()) == []


def lease(namespace: str, renewed_s: int, duration_s: int = 15) -> dict[str, Any]:
    renewed = to_rfc3339(NOW - timedelta(seconds=renewed_s))
    spec = {"renewTime": renewed, "leaseDurationSeconds": duration_s}
    return {"metadata": {"namespace": namespace, "name": "manager"}, "spec": spec}


def cluster(probed_s: int) -> dict[str, Any]:
    condition = {"lastProbeTime": to_rfc3339(NOW - timedelta(seconds=probed_s))}
    return {"metadata": {"name": "east"}, "status": {"conditions": [{}, condition]}}


@pytest.mark.parametrize(
    ("host", "leases", "clusters", "expected"),
    [
        (
            KARMADA,
            [lease("karmada-system", 30)],
            [],
            "Lease karmada-system/manager was renewed at 2026-11-23T11:59:30Z",
        ),
        (KARMADA, [lease("karmada-system", 31)], [], ""),
        (KARMADA, [lease("karmada-cluster", -5)], [], "Lease karmada-cluster/manager"),
        (KARMADA, [lease("kube-system", 1), {"metadata": {"namespace": "karmada-system", "name": "x"}}], [], ""),
        (KUBEADMIRAL, [lease("kube-admiral-system", 5)], [], "Lease kube-admiral-system/manager"),
        (KUBEADMIRAL, [lease("karmada-system", 5)], [cluster(100)], "FederatedCluster east was probed"),
        (KUBEADMIRAL, [], [cluster(101)], ""),
    ],
)
def test_signs_that_a_control_plane_runs(host: PreviousHost, leases: Any, clusters: Any, expected: str) -> None:
    found = signs_of_life(host, leases, clusters, NOW)
    assert [each.startswith(expected) for each in found] == ([True] if expected else [])
