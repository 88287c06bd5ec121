"""What the federation delivered, read from member objects, and which repairs follow."""

from typing import Any

import pytest

from federation.planning.drift.delivered import Delivered, delivered_of, is_superseded, plan_repair

CONFIGURATION = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}},
}
DELIVERED = Delivered(CONFIGURATION, "u1", "2026-01-01T00:00:00Z")
REPLICAS = ("spec", "replicas")


def entry(fields: Any, **more: Any) -> dict[str, Any]:
    head = {"manager": "federation", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z"}
    return {**head, "fieldsV1": fields, **more}


def live(*entries: dict[str, Any], uid: str = "u1", **spec: Any) -> dict[str, Any]:
    metadata = {**CONFIGURATION["metadata"], "uid": uid, "managedFields": list(entries)}  # type: ignore[dict-item]
    return {**CONFIGURATION, "metadata": metadata, "spec": {**CONFIGURATION["spec"], **spec}}  # type: ignore[dict-item]


def test_a_map_of_which_only_others_own_parts_is_empty() -> None:
    ours = entry({"f:metadata": {"f:labels": {}}, "f:spec": {"f:selector": {}}})
    theirs = entry({"f:metadata": {"f:labels": {"f:app": {}}}}, manager="kubectl", operation="Update")
    found = delivered_of(live(ours, theirs, selector={"matchLabels": {"app": "web"}}))
    assert found is not None
    assert found.configuration["metadata"]["labels"] == {}
    assert found.configuration["spec"] == {"selector": {"matchLabels": {"app": "web"}}}


@pytest.mark.parametrize(
    "obj",
    [
        live(),
        live(entry({"f:spec": {"f:replicas": {}}}, manager="kubectl")),
        live(entry({"f:spec": {"f:replicas": {}}}, apiVersion="apps/v1beta1")),
        live(entry({"f:spec": 3})),
        live(entry({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{": {}}}}}})),
        live(entry(None)),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"managedFields": "odd"}},
    ],
)
def test_other_or_malformed_managed_fields_are_no_delivery(obj: dict[str, Any]) -> None:
    assert delivered_of(obj) is None


def test_an_object_that_is_being_deleted_is_no_delivery_and_is_not_repaired() -> None:
    obj = live(entry({"f:spec": {"f:replicas": {}}}), replicas=9)
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert delivered_of(obj) is None
    assert plan_repair(DELIVERED, obj) is None


def test_only_drift_of_delivered_fields_is_repaired() -> None:
    assert plan_repair(DELIVERED, live(paused=True)) is None
    repaired = plan_repair(DELIVERED, live(replicas=9))
    assert repaired is not None
    assert repaired["spec"] == CONFIGURATION["spec"]
    assert repaired["metadata"]["uid"] == "u1"


def test_a_missing_object_is_created_again_and_another_one_of_its_name_is_left_alone() -> None:
    assert plan_repair(DELIVERED, None) == CONFIGURATION
    assert plan_repair(DELIVERED, live(uid="u2", replicas=9)) is None


def test_replicas_that_were_scaled_are_left_alone_and_other_fields_are_not() -> None:
    scaled = entry({"f:spec": {"f:replicas": {}}}, manager="hpa", operation="Update", subresource="scale")
    assert plan_repair(DELIVERED, live(scaled, replicas=9), REPLICAS) is None
    repaired = plan_repair(DELIVERED, live(scaled, replicas=9, template={}), REPLICAS)
    assert repaired is not None
    assert "replicas" not in repaired["spec"]
    assert repaired["spec"]["template"] == CONFIGURATION["spec"]["template"]  # type: ignore[index]


@pytest.mark.parametrize(("time", "expected"), [("2026-01-01T00:00:00Z", False), ("2026-01-01T00:00:01Z", True)])
def test_a_later_apply_supersedes_what_was_recorded(time: str, *, expected: bool) -> None:
    assert is_superseded(DELIVERED, live(entry({"f:spec": {}}, time=time))) is expected


def test_an_object_that_may_have_run_to_completion_is_not_created_again_and_a_finished_one_is_left_alone() -> None:
    job = {**CONFIGURATION, "apiVersion": "batch/v1", "kind": "Job"}
    delivered = Delivered(job, "u1", "2026-01-01T00:00:00Z")
    assert plan_repair(delivered, None) is None
    drifted = {**job, "metadata": {**job["metadata"], "uid": "u1"}, "spec": {}}  # type: ignore[dict-item]
    assert plan_repair(delivered, drifted) is not None
    finished = {**drifted, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert plan_repair(delivered, finished) is None


def test_a_repair_keeps_what_the_member_changes_by_design() -> None:
    def claim(size: str, label: str) -> dict[str, Any]:
        metadata = {"name": "data", "namespace": "shop", "labels": {"a": label}}
        spec = {"resources": {"requests": {"storage": size}}}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}

    delivered = Delivered(claim("1Gi", "1"), "u1", "2026-01-01T00:00:00Z")
    grown, drifted = claim("2Gi", "1"), claim("2Gi", "2")
    for each in (grown, drifted):
        each["metadata"]["uid"] = "u1"
    assert plan_repair(delivered, grown) is None
    assert plan_repair(delivered, drifted) == grown


def test_a_value_that_has_no_parts_any_more_was_delivered_as_it_is() -> None:
    parts = {
        "f:replicas": {"f:old": {}},
        "f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image": {}}}}},
    }
    found = delivered_of(live(entry({"f:spec": parts}), replicas=3))
    assert found is not None
    assert found.configuration["spec"] == {
        "replicas": 3,
        "template": {"spec": {"containers": [{"name": "web", "image": "nginx:1"}]}},
    }
