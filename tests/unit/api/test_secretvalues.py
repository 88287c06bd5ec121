"""What carries values of Secrets, and what is left of it without them."""

import json
from typing import Any

import orjson
import pytest

from federation.api.secretvalues import (
    carries_secret_values,
    compared_without_secret_values,
    secret_values,
    without_secret_values,
)

HIDDEN = "Y2FuYXJ5"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "data": {"a": HIDDEN}}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def policy(**overriders: Any) -> dict[str, Any]:
    return {"kind": "OverridePolicy", "spec": {"overrideRules": [{"overriders": overriders}]}}


def patch(path: str, value: Any) -> dict[str, Any]:
    return policy(jsonpatch=[{"path": path, "value": value}])


CARRIERS: dict[str, Any] = {
    "a Secret": SECRET,
    "a Secret as text": {"kind": "Secret", "stringData": {"a": HIDDEN}},
    "a misspelled field": {"kind": "Secret", "stringdata": {"a": HIDDEN}},
    "a list of manifests": {"kind": "Work", "spec": {"manifests": [{"kind": "ConfigMap"}, SECRET]}},
    "kubectl's annotation": {"metadata": {"annotations": {LAST_APPLIED: json.dumps(SECRET)}}},
    "a text in a text": {"metadata": {"annotations": {"a": json.dumps({"b": json.dumps(SECRET)})}}},
    "a patch of data": patch("/data/a", HIDDEN),
    "a patch of all data": patch("/data", {"a": HIDDEN}),
    "a patch of stringData": patch("/stringData/a", HIDDEN),
    "a document": policy(fields=[{"fieldPath": "/data/a", "yaml": [{"subPath": "/b", "value": HIDDEN}]}]),
    "an image": policy(image=[{"imagePath": "/data/a", "operations": [{"value": HIDDEN}]}]),
    "an earlier policy": {"status": {"changeRollout": {"earlier": patch("/data/a", HIDDEN)["spec"]}}},
}
OTHERS: dict[str, Any] = {
    "a ConfigMap": {"kind": "ConfigMap", "data": {"a": "Secret"}},
    "a reference": {"kind": "Issuer", "spec": {"ref": {"kind": "Secret", "name": "db", "key": "data"}}},
    "an empty Secret": {"kind": "Secret", "data": {}},
    "a variable of a Secret": {"spec": {"env": [{"valueFrom": {"secretKeyRef": {"name": "Secret"}}}]}},
    "a patch of the spec": patch("/spec/replicas", 1),
    "a removal": policy(jsonpatch=[{"path": "/data/a", "operator": "remove"}]),
    "a path of HTTP": {"kind": "Ingress", "spec": {"paths": [{"path": "/data", "value": "Secret"}]}},
    "a text that is no JSON": {"data": {"a": '{"kind": "Secret", "data"'}},
    "a text that is a list": {"data": {"a": '["Secret"]'}},
}


@pytest.mark.parametrize("name", CARRIERS)
def test_an_object_that_carries_a_value_is_recognized_and_can_be_shown_without_it(name: str) -> None:
    obj = CARRIERS[name]
    assert carries_secret_values(orjson.dumps(obj))
    assert {HIDDEN.encode(), b"canary"} <= set(secret_values(obj))
    shown = without_secret_values(obj)
    assert HIDDEN not in str(shown)
    assert set(secret_values(shown)) == {b"***"}


@pytest.mark.parametrize("name", OTHERS)
def test_other_objects_are_shown_as_they_are(name: str) -> None:
    obj = OTHERS[name]
    assert not carries_secret_values(orjson.dumps(obj))
    assert without_secret_values(obj) == obj
    assert list(secret_values(obj)) == []


@pytest.mark.parametrize("value", [b"", b"no JSON", b'{"kind": "Secret", "data": {', b'"Secret"', b'\xff"Secret"'])
def test_bytes_that_are_no_object_carry_nothing(value: bytes) -> None:
    assert not carries_secret_values(value)


def test_differences_of_values_are_visible_and_the_values_are_not() -> None:
    wanted = {**SECRET, "data": {"a": "c2FtZQ==", "b": "bmV3", "e": None}, "stringData": "odd"}
    live = {**SECRET, "data": {"a": "c2FtZQ==", "b": "b2xk", "c": "b3duZWQ="}}
    shown = compared_without_secret_values(wanted, live, "wanted")
    assert shown["data"] == {"a": "***", "b": "*** (wanted)", "e": None}
    assert shown["stringData"] == "***"
    assert compared_without_secret_values(live, wanted, "live")["data"] == {"a": "***", "b": "*** (live)", "c": "***"}
    assert compared_without_secret_values(patch("/data/a", "bmV3"), patch("/data/a", 5), "before") == patch(
        "/data/a", "*** (before)"
    )
    applied = [{"metadata": {"annotations": {LAST_APPLIED: json.dumps(each)}}} for each in (wanted, live)]
    text = compared_without_secret_values(applied[0], applied[1], "before")["metadata"]["annotations"][LAST_APPLIED]
    assert json.loads(text)["data"]["b"] == "*** (before)"
    assert list(secret_values({"kind": "Secret", "data": {"n": 5}})) == [b"5"]
