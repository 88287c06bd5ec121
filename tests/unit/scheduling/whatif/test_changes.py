"""Hypothetical changes of objects: what else they have stays."""

from typing import Any

import pytest

from federation.scheduling.whatif.changes import with_label, with_taint, without_taint

A_TAINT, OTHER = {"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("labels", "value", "expected"),
    [
        ({"b": "1"}, "2", {"a": "2", "b": "1"}),
        ({"a": "1", "b": "1"}, "2", {"a": "2", "b": "1"}),
        ({"a": "1", "b": "1"}, None, {"b": "1"}),
        (None, "2", {"a": "2"}),
        (None, None, {}),
    ],
)
def test_one_label_changes(labels: dict[str, str] | None, value: str | None, expected: dict[str, str]) -> None:
    found = with_label({"metadata": {"name": "x", "labels": labels}, "spec": {}}, "a", value)
    assert found == {"metadata": {"name": "x", "labels": expected}, "spec": {}}


def test_one_taint_changes() -> None:
    cluster: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"taints": [A_TAINT, OTHER], "apiEndpoint": "e"}}
    changed = with_taint(cluster, "a", "v", "NoSchedule")
    assert changed["spec"] == {"taints": [OTHER, {**A_TAINT, "value": "v"}], "apiEndpoint": "e"}
    assert without_taint(cluster, "a", "NoSchedule")["spec"]["taints"] == [OTHER]
    assert without_taint(cluster, "b")["spec"]["taints"] == [A_TAINT, OTHER]
    assert not without_taint(cluster, "a")["spec"].get("taints")
