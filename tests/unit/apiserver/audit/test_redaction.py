"""Redaction of bodies in audit events."""

import gzip
from typing import Any

import orjson
import pytest

from federation.apiserver.audit.redaction import REDACTED, holds_secrets, to_recorded, unpack
from federation.apiserver.auth.identity import Attributes

JSON = "application/json"
LAST = "kubectl.kubernetes.io/last-applied-configuration"


HIDDEN = {("core.kubeadmiral.io", "federatedobjects"), ("core.kubeadmiral.io", "clusterfederatedobjects")}


def recorded(
    value: Any, *, is_redacted: bool = False, content_type: str = JSON, includes_managed_fields: bool = True
) -> Any:
    return to_recorded(
        orjson.dumps(value), content_type, is_redacted=is_redacted, includes_managed_fields=includes_managed_fields
    )


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        (Attributes("get", "", "v1", "secrets"), True),
        (Attributes("get", "", "v1", "secrets", "status"), True),
        (Attributes("get", "", "v1", "configmaps"), True),
        (Attributes("create", "", "v1", "serviceaccounts", "token"), True),
        (Attributes("create", "", "v1", "serviceaccounts"), False),
        (Attributes("create", "authentication.k8s.io", "v1", "tokenreviews"), True),
        (Attributes("get", "core.kubeadmiral.io", "v1alpha1", "federatedobjects"), True),
        (Attributes("get", "core.kubeadmiral.io", "v1alpha1", "clusterfederatedobjects", "status"), True),
        (Attributes("get", "", "v1", "pods"), False),
        (Attributes("get", path="/healthz"), False),
    ],
)
def test_resources_that_may_hold_secrets(attributes: Attributes, expected: bool) -> None:
    assert holds_secrets(attributes, HIDDEN) is expected


def test_values_of_secrets_are_redacted_and_keys_kept() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {"name": "s", "annotations": {LAST: "{hunter2}", "team": "a"}},
        "data": {"password": "aHVudGVyMg=="},
        "stringData": {"user": "hunter2"},
    }
    shown = recorded(secret)
    assert shown == recorded(secret, is_redacted=True)
    assert shown["data"] == {"password": REDACTED}
    assert shown["stringData"] == {"user": REDACTED}
    assert shown["metadata"] == {"name": "s", "annotations": {LAST: REDACTED, "team": "a"}}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ([{"op": "add", "path": "/data/x", "value": "hunter2"}], "application/json-patch+json"),
        ([{"op": "replace", "path": "", "value": {"data": {"x": "hunter2"}}}], "application/json-patch+json"),
        ({"data": {"x": "hunter2"}}, "application/merge-patch+json"),
        ({"data": {"x": ["hunter2"]}}, "application/strategic-merge-patch+json; charset=utf-8"),
        ({"stringData": {"x": "hunter2"}}, "application/apply-patch+yaml"),
        ({"spec": {"template": {"kind": "Secret", "data": {"x": "hunter2"}}}}, JSON),
        ({"spec": {"overrides": [{"override": {"patches": [{"path": "/data/x", "value": "hunter2"}]}}]}}, JSON),
        ({"spec": {"token": "hunter2"}}, "application/yaml"),
        ({"status": {"token": "hunter2"}}, JSON),
        ({"items": [{"binaryData": {"x": "hunter2"}}]}, JSON),
        ({"rows": [{"object": {"kind": "Secret", "data": {"x": "hunter2"}}}]}, JSON),
    ],
)
def test_no_form_of_a_body_reveals_a_secret(body: Any, content_type: str) -> None:
    shown = recorded(body, is_redacted=True, content_type=content_type)
    assert shown
    assert b"hunter2" not in orjson.dumps(shown)


def test_yaml_is_redacted_too() -> None:
    body = b"kind: Secret\nstringData:\n  password: hunter2\n"
    for content_type in ("application/yaml", "application/apply-patch+yaml"):
        shown = to_recorded(body, content_type, is_redacted=False, includes_managed_fields=True)
        assert shown == {"kind": "Secret", "stringData": {"password": REDACTED}}


def test_other_objects_are_unchanged_except_for_secrets_inside() -> None:
    deployment = {"kind": "Deployment", "spec": {"data": {"a": 1}, "token": "shown", "value": "shown"}}
    assert recorded(deployment) == deployment
    assert recorded({"items": [{"kind": "ConfigMap", "data": {"a": "b"}}]})["items"][0]["data"] == {"a": REDACTED}


def test_managed_fields_are_omitted_as_configured() -> None:
    obj = {"metadata": {"name": "a", "managedFields": []}}
    assert recorded(obj, includes_managed_fields=False) == {"metadata": {"name": "a"}}
    assert recorded({"items": [obj]}, includes_managed_fields=False) == {"items": [{"metadata": {"name": "a"}}]}
    assert recorded(obj) == obj
    assert recorded(["x"], content_type="application/json-patch+json", includes_managed_fields=False) == ["x"]


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"", JSON), (b" ", JSON), (b"{", JSON), (b"[]", JSON), (b"{}", "image/png"), (b"\xff", "application/yaml")],
)
def test_unreadable_bodies_are_omitted(body: bytes, content_type: str) -> None:
    assert to_recorded(body, content_type, is_redacted=False, includes_managed_fields=True) is None


def test_compressed_responses_are_decompressed_up_to_a_limit() -> None:
    packed = gzip.compress(b"x" * 100)
    assert unpack(packed, b"gzip", 100) == b"x" * 100
    assert unpack(packed, b"gzip", 99) is None
    assert unpack(packed[:-9], b"gzip", 1000) is None
    assert unpack(b"plain", b"", 3) == b"plain"
