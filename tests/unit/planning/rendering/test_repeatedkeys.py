"""Repeated keys of lists mean in members what they mean in one cluster."""

from typing import Any

import pytest

from federation.apimachinery.resources import Object
from federation.planning.rendering.repeatedkeys import without_repeated_keys


def _pod(container: Object | None = None, **spec: Any) -> Object:
    containers = [{"name": "main", **(container or {})}]
    return {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers, **spec}}


def _env(*pairs: tuple[str, Any]) -> list[Object]:
    return [{"name": n, "value": v} if isinstance(v, str) else {"name": n, "valueFrom": v} for n, v in pairs]


FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
ENVS = [
    ([("A", "1"), ("B", "2")], [("A", "1"), ("B", "2")]),
    ([("A", "1"), ("B", "2"), ("A", "3")], [("B", "2"), ("A", "3")]),
    ([("A", "1"), ("A", FIELD)], [("A", FIELD)]),
    ([("A", FIELD), ("A", "1")], [("A", "1")]),
    ([("PATH", "/a"), ("PATH", "$(PATH):/b")], [("PATH", "/a:/b")]),
    ([("A", "1"), ("B", "$(A)"), ("A", "2")], [("B", "1"), ("A", "2")]),
    ([("A", "1"), ("A", "2"), ("B", "$(A)")], [("A", "2"), ("B", "$(A)")]),
    ([("A", "1"), ("B", "$$(A)"), ("A", "2")], [("B", "$$(A)"), ("A", "2")]),
    ([("A", ""), ("B", "x$(A)"), ("A", "2")], [("B", "x"), ("A", "2")]),
    ([("A", "1"), ("A", "$(A)2"), ("A", "$(A)3")], [("A", "123")]),
    ([("A", FIELD), ("B", "$(A)"), ("A", "2")], [("A", FIELD), ("B", "$(A)"), ("A", "2")]),
    ([("A", "1"), ("B", "$(C)"), ("A", "2")], [("B", "$(C)"), ("A", "2")]),
]


@pytest.mark.parametrize(("given", "expected"), ENVS)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_the_last_variable_wins_and_references_keep_their_values(field: str, given: Any, expected: Any) -> None:
    pod = _pod()
    pod["spec"][field] = [{"name": "main", "env": _env(*given)}]
    assert without_repeated_keys(pod)["spec"][field][0]["env"] == _env(*expected)


PORTS = [
    ([{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}], [{"containerPort": 80, "protocol": "TCP"}]),
    ([{"containerPort": 80}, {"containerPort": 80, "name": "web"}], [{"containerPort": 80, "name": "web"}]),
    (
        [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
        [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
    ),
    (
        [{"containerPort": 80, "name": "a"}, {"containerPort": 80, "name": "b"}],
        [{"containerPort": 80, "name": "a"}, {"containerPort": 80, "name": "b"}],
    ),
]


@pytest.mark.parametrize(("given", "expected"), PORTS)
def test_equal_ports_are_one_and_contradicting_ones_stay(given: list[Object], expected: list[Object]) -> None:
    assert without_repeated_keys(_pod({"ports": given}))["spec"]["containers"][0]["ports"] == expected


def test_pull_secrets_are_named_once_and_the_names_of_an_address_add_up() -> None:
    aliases = [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}, {"ip": "10.0.0.1", "hostnames": ["b", "c"]}]
    folded = without_repeated_keys(_pod(imagePullSecrets=[{"name": "x"}, {"name": "x"}], hostAliases=aliases))["spec"]
    assert folded["imagePullSecrets"] == [{"name": "x"}]
    assert folded["hostAliases"] == [{"ip": "10.0.0.1", "hostnames": ["a", "b", "c"]}]


@pytest.mark.parametrize("path", [("template",), ("jobTemplate", "spec", "template")])
def test_pod_templates_are_folded_too(path: tuple[str, ...]) -> None:
    obj: Any = _pod({"env": _env(("A", "1"), ("A", "2"))})["spec"]
    for key in ("spec", *reversed(path)):
        obj = {key: obj}
    inner = without_repeated_keys({"kind": "CronJob", "spec": obj})["spec"]
    for key in path:
        inner = inner[key]
    assert inner["spec"]["containers"][0]["env"] == _env(("A", "2"))


def test_secrets_of_a_service_account_are_named_once() -> None:
    account = {"kind": "ServiceAccount", "secrets": [{"name": "x"}, {"name": "x"}]}
    assert without_repeated_keys(account)["secrets"] == [{"name": "x"}]


@pytest.mark.parametrize("obj", [{}, {"spec": "x"}, _pod({"env": ["x", "x"]}), _pod({"env": "x"}), _pod()])
def test_an_object_without_repetitions_is_the_same(obj: Object) -> None:
    assert without_repeated_keys(obj) is obj
