"""Behaviour vectors: what of a member's object survives a delivery."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.vectors import each_case, facts, filled, load

from federation.api import names
from federation.apiserver.semantics.fieldownership.apply import apply
from federation.apiserver.semantics.schema.builtin import builtin_schema
from federation.planning.rendering import retention
from federation.planning.rendering.drift import is_subset

_API_VERSIONS = {
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
}
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _delivered(kind: str, desired: dict[str, Any], live: dict[str, Any], last: Iterable[str] = ()) -> Any:
    """Return the member's object after the product has applied `desired` to it.

    KubeAdmiral replaces the object and copies from the member's what must survive; the product applies what it wants
    and the rest stays. `last` are the labels that it applied before.
    """
    version = _API_VERSIONS.get(kind, "v1")
    identity = {"apiVersion": version, "kind": kind}
    schema = builtin_schema(*version.split("/"), kind) if "/" in version else builtin_schema("", version, kind)
    owned = {"f:metadata": {"f:labels": {f"f:{key}": {} for key in last}}}
    entry = {"manager": names.FIELD_MANAGER, "operation": "Apply", "apiVersion": version, "fieldsV1": owned}
    held = {**live, **identity, "metadata": {"name": "x", **live.get("metadata", {}), "managedFields": [entry]}}
    wanted = retention.retain_for_apply({**desired, **identity}, {**live, **identity})
    return apply(
        schema,
        held,
        {**wanted, "metadata": {"name": "x", **wanted.get("metadata", {})}},
        manager=names.FIELD_MANAGER,
        force=True,
        api_version=version,
        subresource="",
        now=_NOW,
    )


def _retain_replicas(case: dict[str, Any]) -> Any:
    given = filled(case["input"], desired={}, cluster={})
    annotations = given.get("fedAnnotations") or given.get("annotations") or given.get("fedObjectAnnotations") or {}
    federated = given.get("fedObject") or {"metadata": {"annotations": annotations}}
    if not retention.is_replicas_retained(federated):
        return given["desired"]
    path = tuple(str(given.get("path") or "spec.replicas").split("."))
    return retention.retain_replicas(given["desired"], given["cluster"], path)


@each_case(load("sync_retain"))
def test_retention(case: dict[str, Any]) -> None:
    given = filled(case["input"], template={}, observed={}, lastPropagatedKeys=[], desired={}, cluster={})
    expected = filled(case["expected"], result={}, object={})
    match given["op"]:
        case "mergeStringMaps":
            live, desired = ({"metadata": {"labels": given[key]}} for key in ("observed", "template"))
            merged = _delivered("ConfigMap", desired, live, given["lastPropagatedKeys"])
            assert (merged["metadata"].get("labels") or {}) == expected["result"]
        case "retainContainer":
            desired, live = ({"spec": {"containers": [given[key]]}} for key in ("desired", "cluster"))
            (container,) = _delivered("Pod", desired, live)["spec"]["containers"]
            assert is_subset(expected["object"], container)
            assert container.get("resources") == expected["object"].get("resources")
        case "retainReplicas":
            assert _retain_replicas(case) == expected["object"]
        case other:
            pytest.fail(f"unknown operation {other}")


@each_case(load("sync_retain_derived"))
def test_retention_by_kind(case: dict[str, Any]) -> None:
    given = filled(case["input"], desired={}, cluster={})
    expected = filled(case["expected"], error=False, object={})
    if expected["error"]:
        if given["kind"] == "Pod":
            pytest.skip("a volume mount is found by its path, so there is no place in a list that could be wrong")
        with pytest.raises(retention.RetentionError):
            _delivered(given["kind"], given["desired"], given["cluster"])
        return
    if given["kind"] not in {
        "Service",
        "ServiceAccount",
        "Pod",
        "PersistentVolume",
        "PersistentVolumeClaim",
        *_API_VERSIONS,
    }:
        pytest.skip("a kind without a schema here: what the product does not apply stays")
    assert is_subset(expected["object"], _delivered(given["kind"], given["desired"], given["cluster"]))


@each_case(load("kubefed_retain_service"))
def test_service_fields_that_kubefed_retained(case: dict[str, Any]) -> None:
    given = facts(case["input"], desired={}, cluster={})
    cluster, expected = given["cluster"], filled(case["expected"], error=False, retainedSpec={})
    assert not given["desired"], "the retained fields do not depend on the desired object"
    if expected["error"]:
        with pytest.raises(retention.RetentionError):
            retention.service_fields(cluster)
        return
    assert retention.service_fields(cluster) == expected["retainedSpec"]


def test_the_annotation_decides_about_replicas() -> None:
    assert retention.is_replicas_retained({"metadata": {"annotations": {names.RETAIN_REPLICAS: "true"}}})
    assert not retention.is_replicas_retained({"metadata": {}})
