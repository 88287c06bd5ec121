"""Which fields of a template nobody wrote, and a configuration without them."""

from typing import Any

import orjson
import pytest

from federation.apimachinery.wellknown import LAST_APPLIED_CONFIGURATION
from federation.planning.drift.fields import Field, drifted_fields
from federation.planning.drift.unwritten import find_unwritten, may_be_default, without

CONTAINER = {"name": "web", "image": "web:1", "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/log"}
SPEC = {
    "revisionHistoryLimit": 10,
    "paused": False,
    "template": {"spec": {"dnsPolicy": "ClusterFirst", "containers": [CONTAINER]}},
}
GRACE = ("spec", "revisionHistoryLimit")
DNS = ("spec", "template", "spec", "dnsPolicy")
PULL = ("spec", "template", "spec", "containers", {"name": "web"}, "imagePullPolicy")
OWNED = {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image": {}}}}}}}
WITH_LIMIT = {"f:spec": {"f:revisionHistoryLimit": {}}}
RECORD = {"f:metadata": {"f:annotations": {f"f:{LAST_APPLIED_CONFIGURATION}": {}}}}


def field(steps: tuple[Any, ...]) -> Field:
    return Field("field", steps)


def source(*managed: dict[str, Any], applied: Any = None, spec: dict[str, Any] = SPEC) -> dict[str, Any]:
    annotations = {} if applied is None else {LAST_APPLIED_CONFIGURATION: orjson.dumps(applied).decode()}
    return {"metadata": {"name": "web", "annotations": annotations, "managedFields": list(managed)}, "spec": spec}


def entry(fields: dict[str, Any], operation: str = "Apply", **more: Any) -> dict[str, Any]:
    return {"manager": "somebody", "operation": operation, "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    ("obj", "steps", "is_unwritten"),
    [
        (source(entry(OWNED)), GRACE, True),
        (source(entry(OWNED)), DNS, True),
        (source(entry(OWNED)), PULL, True),
        (source(entry(OWNED), entry(WITH_LIMIT)), GRACE, False),
        (source(entry(OWNED), entry(WITH_LIMIT, "Update")), GRACE, False),
        (source(entry(OWNED), entry(WITH_LIMIT, subresource="scale")), GRACE, False),
        (source(entry(OWNED), entry(WITH_LIMIT, subresource="status")), GRACE, True),
        (source(entry({"f:spec": {"f:template": {}}})), DNS, False),
        (source(), GRACE, False),
        (source(entry({**WITH_LIMIT, **RECORD}, "Update"), applied={"spec": {}}), GRACE, True),
        (source(entry({**WITH_LIMIT, **RECORD}, "Update"), applied={"spec": {"revisionHistoryLimit": 10}}), GRACE, False),
        (source(entry(RECORD, "Update"), entry(WITH_LIMIT, "Update"), applied={"spec": {}}), GRACE, False),
        (source(entry({**WITH_LIMIT, **RECORD}, "Update"), applied=7), GRACE, False),
        (source(entry(OWNED), spec={**SPEC, "revisionHistoryLimit": 4}), GRACE, False),
        (source(entry(OWNED)), ("spec", "paused"), False),
    ],
    ids=[
        "of the object", "of a map", "of an item", "applied", "updated", "by a subresource", "by the status", "as a whole",
        "no managed fields", "not in kubectl's record", "in kubectl's record", "by another manager", "odd record",
        "overridden", "no default",
    ],
)  # fmt: skip
def test_a_field_is_unwritten_if_it_is_a_default_and_nobody_owns_it(
    obj: dict[str, Any], steps: tuple[Any, ...], is_unwritten: bool
) -> None:
    assert bool(find_unwritten({"spec": SPEC}, obj, [field(steps)])) is is_unwritten


@pytest.mark.parametrize(
    ("wanted", "is_default"),
    [(10, True), (10.0, False), ("10", False), (9, False), (None, False), (True, False)],
)
def test_only_the_very_value_is_a_default(wanted: Any, is_default: bool) -> None:
    assert may_be_default({"spec": {"revisionHistoryLimit": wanted}}, field(GRACE)) is is_default


@pytest.mark.parametrize("steps", [GRACE, DNS, PULL])
def test_a_configuration_without_a_field_differs_in_it_only(steps: tuple[Any, ...]) -> None:
    left = without({"spec": SPEC}, steps)
    (found,) = drifted_fields({"spec": SPEC}, left)
    assert len(found.steps) == len(steps)
    assert not drifted_fields(left, {"spec": SPEC})
    assert SPEC["template"]["spec"]["containers"] == [CONTAINER]  # type: ignore[index]  # a nested literal


@pytest.mark.parametrize("steps", [("spec", "none"), ("spec", "paused", "deep"), ("spec", "template", {"name": "x"})])
def test_a_field_that_is_not_there_changes_nothing(steps: tuple[Any, ...]) -> None:
    assert without({"spec": SPEC}, steps) == {"spec": SPEC}
