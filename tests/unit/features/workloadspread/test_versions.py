"""Versions of pods and workloads in corner cases."""

from typing import Any

import pytest
from tests.support.spreads import REPLICA_SET, with_controller

from federation.features.workloadspread.rules.versions import VERSION_IGNORED, pod_version, workload_version

HASH = "pod-template-hash"


def _template(image: str, **metadata: Any) -> dict[str, Any]:
    return {"template": {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": image}]}}}


def _replica_set(image: str, **metadata: Any) -> dict[str, Any]:
    labels = {HASH: f"hash-{image}", "app": "web"}
    return {"metadata": {"labels": labels, **metadata}, "spec": _template(image, labels=labels, creationTimestamp=None)}


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": _template("b", labels={"app": "web"})}


def test_the_revision_label_is_used_without_a_template_hash() -> None:
    pod = with_controller({"metadata": {"labels": {"controller-revision-hash": "web-x-5d4"}}}, REPLICA_SET)
    assert pod_version(pod) == "5d4"
    assert pod_version(with_controller({"metadata": {"labels": None}}, REPLICA_SET)) == VERSION_IGNORED
    assert pod_version({"metadata": {"labels": {HASH: "x"}}}) == VERSION_IGNORED


def test_a_deployment_has_the_version_of_its_template() -> None:
    sets = [_replica_set("a"), _replica_set("b", deletionTimestamp="2026-01-01T00:00:00Z")]
    assert workload_version(DEPLOYMENT, sets) is None
    assert workload_version(DEPLOYMENT, [*sets, _replica_set("b")]) == "hash-b"


@pytest.mark.parametrize(
    ("workload", "version"),
    [
        ({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"labels": {HASH: "x"}}}, "x"),
        ({"apiVersion": "apps/v1", "kind": "ReplicaSet"}, VERSION_IGNORED),
        ({"apiVersion": "batch/v1", "kind": "Job"}, VERSION_IGNORED),
        ({"apiVersion": "example.com/v1", "kind": "Deployment"}, VERSION_IGNORED),
        (
            {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "status": {"updateRevision": "web-1"}},
            VERSION_IGNORED,
        ),
    ],
)
def test_other_workloads_have_a_version_at_once(workload: dict[str, Any], version: str) -> None:
    assert workload_version(workload) == version


def test_a_clone_set_has_no_version_before_its_controller_saw_it() -> None:
    clone_set = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"generation": 2},
        "status": {"observedGeneration": 1, "updateRevision": "web-x-1"},
    }
    versioned = frozenset({"cloneset"})
    assert workload_version(clone_set, versioned_kinds=versioned) is None
    assert workload_version({**clone_set, "metadata": {"generation": 1}}, versioned_kinds=versioned) == "1"
