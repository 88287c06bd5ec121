"""Documents inside texts: what an override changes, what stays as it was, and what is refused."""

import base64
import json
from typing import Any

import pytest
import yaml

from federation.planning.overrides.documents import DOCUMENT_BYTES_MAX, DOCUMENTS_BYTES_MAX, DocumentEditor
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policies import Cluster, compile_policy, compute_overrides

APP = """\
database: &defaults
  host: db.example   # the primary
  port: 0o17
  started: 2020-01-01
features: [yes, 'no', {deep: "1"}]
replica: *defaults
"""


def a_config_map(text: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"app": text}} | fields


def edited(text: str, *operations: dict[str, Any], form: str = "yaml") -> str:
    (patch,) = DocumentEditor().patches(a_config_map(text), [{"fieldPath": "/data/app", form: list(operations)}])
    assert (patch["op"], patch["path"]) == ("replace", "/data/app")
    result: str = patch["value"]
    return result


def test_other_values_stay_as_they_were_written() -> None:
    text = edited(APP, {"subPath": "/features/-", "operator": "add", "value": "no"})
    assert text == (
        "database: &id001\n  host: db.example\n  port: 0o17\n  started: 2020-01-01\n"
        'features: [yes, \'no\', {deep: "1"}, "no"]\nreplica: *id001\n'
    )


def test_a_change_behind_an_anchor_changes_one_place_only() -> None:
    text = edited(APP, {"subPath": "/database/host", "value": "db.eu"})
    assert yaml.safe_load(text)["database"]["host"] == "db.eu"
    assert yaml.safe_load(text)["replica"]["host"] == "db.example"
    assert "&" not in text


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"subPath": "/a", "value": 2}, {"a": 2, "l": [1, 2]}),
        (
            {"subPath": "/new", "operator": "add", "value": {"x": None, "y": "1\n2\n"}},
            {"new": {"x": None, "y": "1\n2\n"}},
        ),
        ({"subPath": "/new~1key~0", "value": True}, {"new/key~": True}),
        ({"subPath": "/a", "operator": "remove"}, {"l": [1, 2]}),
        ({"subPath": "/l/0", "operator": "add", "value": 0}, {"l": [0, 1, 2]}),
        ({"subPath": "/l/2", "operator": "add", "value": 3}, {"l": [1, 2, 3]}),
        ({"subPath": "/l/-", "operator": "add", "value": 3}, {"l": [1, 2, 3]}),
        ({"subPath": "/l/-1", "operator": "replace", "value": 3}, {"l": [1, 3]}),
        ({"subPath": "/l/1", "operator": "remove"}, {"l": [1]}),
    ],
)
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_operations(operation: dict[str, Any], expected: dict[str, Any], form: str) -> None:
    before = {"a": 1, "l": [1, 2]}
    text = edited(json.dumps(before), operation, form=form)
    after = yaml.safe_load(text) if form == "yaml" else json.loads(text)
    removed = {"a"} if operation.get("operator") == "remove" and operation["subPath"] == "/a" else set()
    assert after == {key: value for key, value in before.items() if key not in removed} | expected


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ({"subPath": "/x", "operator": "remove"}, r"fields\[0\]\.{form}\[0\]\.subPath: .*missing.* x"),
        ({"subPath": "/x/y", "value": 1}, "missing.* x"),
        ({"subPath": "/l/2", "value": 1}, "index 2 is out of range"),
        ({"subPath": "/l/9", "operator": "add", "value": 1}, "index 9 is out of range"),
        ({"subPath": "/l/x", "operator": "add", "value": 1}, "'x' is no list index"),
        ({"subPath": "/a/b", "value": 1}, "not in|no mapping|not an object"),
        ({"subPath": "/a/b/c", "value": 1}, "not in|no mapping|not an object"),
    ],
)
@pytest.mark.parametrize("form", ["yaml", "json"])
def test_what_does_not_apply_is_named(operation: dict[str, Any], message: str, form: str) -> None:
    with pytest.raises(OverrideError, match=message.replace("{form}", form)):
        edited('{"a": 1, "l": [1, 2]}', operation, form=form)


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("a: [", "yaml", "not one document of YAML"),
        ("a: 1\n---\nb: 2\n", "yaml", "not one document of YAML"),
        ("", "yaml", "the text is empty"),
        ("{a}", "json", "the text is no JSON"),
        ("[" * 300 + "]" * 300, "yaml", "more than 128 levels"),
        ("a: " + "x" * DOCUMENT_BYTES_MAX, "yaml", "the limit is 65,536"),
    ],
)
def test_texts_that_cannot_be_changed(text: str, form: str, message: str) -> None:
    with pytest.raises(OverrideError, match=rf"fields\[0\]\.fieldPath: .*{message}"):
        edited(text, {"subPath": "/a", "value": 1}, form=form)


@pytest.mark.parametrize(
    ("overrider", "message"),
    [
        ({"fieldPath": "/data/other", "yaml": [{"subPath": "/a"}]}, "no such field at /data/other"),
        ({"fieldPath": "/data", "yaml": [{"subPath": "/a"}]}, "no text at /data"),
        ({"fieldPath": "/metadata/finalizers/0", "yaml": [{"subPath": "/a"}]}, "no such field"),
        ({"fieldPath": "/data/app", "yaml": [{"subPath": "/a"}], "json": [{"subPath": "/a"}]}, "remove one of"),
    ],
)
def test_fields_without_a_text(overrider: dict[str, Any], message: str) -> None:
    with pytest.raises(OverrideError, match=message):
        list(DocumentEditor().patches(a_config_map("a: 1"), [overrider]))


def test_aliases_are_not_expanded() -> None:
    levels = "\n".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}, *l{n - 1}]" for n in range(1, 40))
    text = edited(f"l0: &l0 [x]\n{levels}\na: 1\n", {"subPath": "/a", "value": 2})
    assert len(text) < 4_000


def test_a_secret_is_decoded_and_encoded() -> None:
    secret = a_config_map(base64.b64encode(b"user: a\n").decode(), kind="Secret")
    overrider = {"fieldPath": "/data/app", "yaml": [{"subPath": "/user", "value": "b"}]}
    (patch,) = DocumentEditor().patches(secret, [overrider])
    assert base64.b64decode(patch["value"]) == b'user: "b"\n'
    with pytest.raises(OverrideError, match="no text in base64"):
        list(DocumentEditor().patches(a_config_map("a: 1", kind="Secret"), [overrider]))


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"kind": "Secret", "apiVersion": "vault.example.com/v1"}, "/data/app"),
        ({"kind": "Secret", "stringData": {"app": "user: a\n"}}, "/stringData/app"),
    ],
)
def test_what_is_not_the_data_of_a_secret_is_no_base64(fields: dict[str, Any], path: str) -> None:
    overrider = {"fieldPath": path, "yaml": [{"subPath": "/user", "value": "b"}]}
    (patch,) = DocumentEditor().patches(a_config_map("user: a\n", **fields), [overrider])
    assert patch["value"] == 'user: "b"\n'


def test_two_overriders_of_one_text_chain() -> None:
    overriders = [{"fieldPath": "/data/app", "yaml": [{"subPath": f"/{key}", "value": key}]} for key in "ab"]
    (patch,) = DocumentEditor().patches(a_config_map("c: 1\n"), overriders)
    assert patch["value"] == 'c: 1\na: "a"\nb: "b"\n'


def test_json_keeps_its_form() -> None:
    operation = {"subPath": "/a", "value": 2}
    assert edited('{"a":1}', operation, form="json") == '{"a":2}'
    assert edited('{\n  "a": 1\n}\n', operation, form="json") == '{\n  "a": 2\n}'


def test_yaml_for_all_clusters_together_is_bounded() -> None:
    """A thousand rules over one large text would keep the control plane busy for minutes."""
    rules = [
        {
            "targetClusters": {"clusters": [f"c{number}"]},
            "overriders": {"fields": [{"fieldPath": "/data/app", "yaml": [{"subPath": "/a", "value": number}]}]},
        }
        for number in range(40)
    ]
    policy = compile_policy({"metadata": {"name": "p", "namespace": "n"}, "spec": {"overrideRules": rules}})
    failures: dict[str, OverrideError] = {}
    text = "a: 1\nb: " + "x" * (DOCUMENTS_BYTES_MAX // 20)
    found = compute_overrides(
        a_config_map(text), [policy], [Cluster(f"c{number}", {}) for number in range(40)], failures
    )
    assert 10 <= len(found) < 20
    assert len(found) + len(failures) == 40
    assert "more than 524,288 characters of YAML" in str(failures["c39"])
