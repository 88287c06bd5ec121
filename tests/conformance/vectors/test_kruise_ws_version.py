"""Pods and workloads have the versions of the vectors."""

from collections.abc import Mapping
from typing import Any

from tests.support.vectors import each_case, facts, filled, load

from federation.features.workloadspread.rules.versions import VERSIONED_KINDS, pod_version, workload_version

GROUPS = {"cloneset": "apps.kruise.io", "job": "batch"}


@each_case(load("kruise-ws-version"))
def test_versions_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], labels={}, versionedKinds=VERSIONED_KINDS, kind="", replicaSets=[])
    expected = filled(case["expected"], version="", error=False)
    versioned = frozenset(given["versionedKinds"])
    if given["function"] == "podVersion":
        owner = {"kind": given.get("ownerKind") or "", "controller": True}
        pod = {"metadata": {"labels": given["labels"], "ownerReferences": [owner]}}
        assert pod_version(pod, versioned) == expected["version"]
    else:
        owned = [replica_set for replica_set in given["replicaSets"] if replica_set.get("owned") is not False]
        replica_sets = [_replica_set(replica_set) for replica_set in owned]
        found = workload_version(_workload(given), replica_sets, versioned)
        assert found == (None if expected["error"] else expected["version"])


def _template(version: Any, labels: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"labels": {"version": version or "", **(labels or {})}}, "spec": {"containers": []}}


def _replica_set(given: Mapping[str, Any]) -> dict[str, Any]:
    given = facts(given, name="", templateVersion="", hash="", owned=True, deleting=False, terminating=False)
    labels = {"pod-template-hash": given["hash"]}
    is_deleting = given["deleting"] or given["terminating"]
    metadata = {"labels": labels, "deletionTimestamp": "2026-01-01T00:00:00Z" if is_deleting else None}
    return {"metadata": metadata, "spec": {"template": _template(given.get("templateVersion"), labels)}}


def _workload(given: Mapping[str, Any]) -> dict[str, Any]:
    kind, _, group = str(given["kind"]).rstrip(")").partition("(")
    labels = {"pod-template-hash": given.get("hash")} | given["labels"]
    return {
        "apiVersion": f"{group or GROUPS.get(kind.lower(), 'apps')}/v1",
        "kind": kind,
        "metadata": {"generation": given.get("generation"), "labels": labels},
        "spec": {"template": _template(given.get("templateVersion"))},
        "status": {
            "observedGeneration": given.get("observedGeneration"),
            "updateRevision": given.get("updateRevision"),
        },
    }
