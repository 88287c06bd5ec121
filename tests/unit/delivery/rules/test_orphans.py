"""Which released StatefulSets a new one of the name takes back, and which it replaces."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import DEPLOYMENTS, STATEFUL_SETS, Object
from federation.delivery.rules.names import ORPHANED
from federation.delivery.rules.orphans import is_orphan, needs_replacement

FIELDS = {"f:metadata": {"f:annotations": {f"f:{ORPHANED}": {}}}}


def _live(manager: str = "federation", *, labels: Any = None, **annotations: str) -> Object:
    entry = {"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": FIELDS}
    marks = {ORPHANED: "true", **annotations}
    return {"metadata": {"name": "db", "labels": labels, "annotations": marks, "managedFields": [entry]}}


def test_one_that_we_released_is_an_orphan() -> None:
    assert is_orphan(STATEFUL_SETS, _live())


@pytest.mark.parametrize(
    "live",
    [
        _live(manager="kubectl"),
        _live(labels={names.MANAGED_LABEL: "false"}),
        _live(**{names.ADOPTED: "true"}),
        {"metadata": {"annotations": {ORPHANED: "true"}}},
        {"metadata": {"annotations": {ORPHANED: "true"}, "managedFields": "lies"}},
        {"metadata": {}},
    ],
)
def test_copied_adopted_and_released_by_its_member_it_is_none(live: Object) -> None:
    assert not is_orphan(STATEFUL_SETS, live)


def test_other_kinds_are_not_taken_back() -> None:
    assert not is_orphan(DEPLOYMENTS, _live())


def _claim(storage: str) -> Object:
    return {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": storage}}}}


SPECS = [
    ({"replicas": 3, "template": {"a": 1}}, {"replicas": 1, "template": {"a": 2}}, False),
    ({"volumeClaimTemplates": [_claim("1Gi")]}, {"volumeClaimTemplates": [_claim("1Gi")]}, False),
    ({"volumeClaimTemplates": [_claim("2Gi")]}, {"volumeClaimTemplates": [_claim("1Gi")]}, True),
    ({"volumeClaimTemplates": [_claim("1Gi")]}, {}, True),
    ({}, {"volumeClaimTemplates": [_claim("1Gi")]}, True),
    ({"serviceName": "a"}, {"serviceName": "b"}, True),
    ({"serviceName": "a"}, {"serviceName": "a", "podManagementPolicy": "OrderedReady"}, False),
]


@pytest.mark.parametrize(("desired", "live", "expected"), SPECS)
def test_it_is_replaced_when_a_field_differs_that_cannot_change(desired: Object, live: Object, expected: bool) -> None:
    assert needs_replacement({"spec": desired}, {"spec": live}) is expected
