"""Behaviour vectors: what of a member's object survives an update."""

from typing import Any

import pytest
from tests.support.vectors import each_case, facts, filled, load

from federation.api import names
from federation.planning.rendering import retention


def _without_empty(obj: Any) -> Any:
    """Drop what the vectors leave out: empty label and annotation maps, and containers written as null."""
    metadata = {k: v for k, v in (obj.get("metadata") or {}).items() if k not in ("labels", "annotations") or v}
    spec = {k: v for k, v in (obj.get("spec") or {}).items() if k not in ("containers", "initContainers") or v}
    rest = {k: v for k, v in obj.items() if k not in ("metadata", "spec", "kind")}
    return {**rest, "metadata": metadata, "spec": spec}


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
            result = retention.merge_maps(given["template"], given["observed"], given["lastPropagatedKeys"])
            assert result == expected["result"]
        case "retainContainer":
            assert retention.retain_container(given["desired"], given["cluster"]) == expected["object"]
        case "retainReplicas":
            assert _retain_replicas(case) == expected["object"]
        case other:
            pytest.fail(f"unknown operation {other}")


@each_case(load("sync_retain_derived"))
def test_retention_by_kind(case: dict[str, Any]) -> None:
    given = filled(case["input"], desired={}, cluster={})
    expected = filled(case["expected"], error=False, object={})
    desired = {**given["desired"], "kind": given["kind"]}
    if expected.get("error"):
        with pytest.raises(retention.RetentionError):
            retention.retain(desired, given["cluster"])
        return
    assert _without_empty(retention.retain(desired, given["cluster"])) == _without_empty(expected["object"])


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
