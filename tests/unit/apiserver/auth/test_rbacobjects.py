"""Parsed RBAC objects are shared, unless they are large."""

import orjson

from federation.apiserver.auth.rbacobjects import parse_role


def a_role(name: str, rules: int) -> bytes:
    metadata = {"name": name, "managedFields": [{"manager": "somebody"}]}
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    return orjson.dumps({"kind": "ClusterRole", "metadata": metadata, "rules": [rule] * rules})


def test_equal_bytes_are_parsed_once_and_without_managed_fields() -> None:
    first, second = parse_role(a_role("reader", 1)), parse_role(a_role("reader", 1))
    assert first is second
    assert first.obj["metadata"] == {"name": "reader"}
    assert first.rules[0].resources == {"pods"}
    assert parse_role(a_role("other", 1)).obj["metadata"]["name"] == "other"


def test_a_large_role_is_not_kept() -> None:
    large = a_role("large", 1_000)
    assert parse_role(large) is not parse_role(large)
    assert len(parse_role(large).rules) == 1_000
