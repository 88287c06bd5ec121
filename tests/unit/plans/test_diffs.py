"""Diffs of a plan: their size, and that they have no values of Secrets, whatever carries them (`api/secretvalues.py`)."""

import difflib
import json
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from federation.api.secretvalues import (
    carries_secret_values,
    compared_without_secret_values,
    secret_values,
    without_secret_values,
)
from federation.plans.diffs import object_diff


def a_map(data: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


_DATA = st.dictionaries(st.integers(0, 40).map(lambda number: f"k{number:02}"), st.sampled_from("abc"), max_size=30)


@given(_DATA, _DATA)
def test_small_manifests_have_the_diff_of_difflib(before: dict[str, str], after: dict[str, str]) -> None:
    texts = [yaml.safe_dump(a_map(data)).splitlines() for data in (before, after)]
    found = object_diff(a_map(before), a_map(after))
    assert [line for line in found if line[0] == "-"] == [
        line for line in list(difflib.unified_diff(*texts, lineterm=""))[2:] if line[0] == "-"
    ]
    for side, text in (("-", texts[0]), ("+", texts[1])):
        for at, line in _numbered(found, side):
            assert text[at - 1] == line


def _numbered(diff: list[str], side: str) -> list[tuple[int, str]]:
    """Return the lines of one side with the numbers that the headers give them."""
    found, number = [], 0
    for line in diff:
        if line.startswith("@@"):
            number = int(line.split(side)[1].split(",")[0].split()[0])
        elif line[0] in (" ", side):
            found.append((number, line[1:]))
            number += 1
    return found


def test_manifests_that_differ_everywhere_are_not_compared_line_by_line() -> None:
    before = {f"k{number:05}": "" for number in range(40_000)}
    after = {key: "x" if number % 2 else "" for number, key in enumerate(before)}
    found = object_diff(a_map(before), a_map(after))
    assert found[0].startswith("@@ 7")
    assert 0 < len(found) <= 2_001


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
