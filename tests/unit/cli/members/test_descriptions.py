"""What members answered, as text: tables of several members, descriptions, channels of exec, amounts of top."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from federation.apimachinery.errors import ConfigurationError
from federation.cli.members import channels
from federation.cli.members.description import describe, to_words
from federation.cli.members.fanout import Answers, describe_problem, group_problems
from federation.cli.members.lookup import split_targets, split_words
from federation.cli.members.tables import Row, columns_of, headings_of, to_lines, to_rows
from federation.cli.members.top import to_use

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
OLD = {
    "columnDefinitions": [{"name": "Name", "priority": 0}, {"name": "Node", "priority": 1}],
    "rows": [{"cells": ["a", None], "object": {"metadata": {"name": "a", "namespace": "shop"}}}],
}
NEW = {
    "columnDefinitions": [{"name": "Name"}, {"name": "Ready"}],
    "rows": [{"cells": ["b", True], "object": {"metadata": {"name": "b", "namespace": "shop"}}}],
}


def rows(table: dict[str, object], *, is_wide: bool) -> list[Row]:
    return to_rows("east", table, columns_of(table, is_wide=is_wide))


def test_columns_of_members_of_different_versions_are_merged() -> None:
    found = [*rows(OLD, is_wide=False), *rows(NEW, is_wide=False)]
    assert headings_of(found) == ["NAME", "READY"]
    assert to_lines(found, headings_of(found), has_namespace=True) == [
        ["east", "shop", "a", "<none>"],
        ["east", "shop", "b", "true"],
    ]


def test_columns_with_a_priority_are_wide() -> None:
    assert headings_of(rows(OLD, is_wide=True)) == ["NAME", "NODE"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("containerPort", "Container Port"), ("podIP", "Pod IP"), ("podIPs", "Pod IPs"), ("uid", "Uid")],
)
def test_fields_are_words(name: str, words: str) -> None:
    assert to_words(name) == words


def test_an_object_is_described_with_conditions_and_events() -> None:
    obj = {
        "kind": "Widget",
        "metadata": {"name": "w", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"b": "2", "a": "1"}},
        "spec": {"parts": [{"name": "wheel", "count": 4, "sizes": {"outer": 3}}], "note": "", "on": True},
        "data": {"app.conf": "one\ntwo"},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Built"}]},
    }
    event = {"metadata": {}, "type": "Normal", "reason": "Built", "message": "by\nhand", "count": 3}
    assert describe("east", obj, [event], NOW) == [
        "Cluster:         east",
        "Kind:            Widget",
        "Name:            w",
        "Age:             60s",
        "Labels:          a=1",
        "                 b=2",
        "Spec:",
        "  Parts:",
        "    wheel:",
        "      Count:  4",
        "      Sizes:  outer=3",
        "  On:  true",
        "Data:",
        "  app.conf:",
        "    one",
        "    two",
        "Conditions:",
        "  TYPE   STATUS  SINCE  REASON  MESSAGE",
        "  Ready  True    -      Built   -",
        "Events:",
        "  TYPE    REASON  AGE     FROM  MESSAGE",
        "  Normal  Built   - (x3)  -     by hand",
    ]


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@example(None, ["\n"])
@given(_VALUES, _VALUES)
def test_any_object_can_be_described(spec: object, status: object) -> None:
    lines = describe("east", {"metadata": {"name": "w"}, "spec": spec, "status": status}, [], NOW)
    assert lines[-1] == "Events:  none"


def test_equal_problems_share_a_line() -> None:
    problems = {f"c{number}": "no answer" for number in range(8)} | {"east": "forbidden"}
    assert group_problems(problems) == [("no answer", "c0, c1, c2, c3, c4 and 3 more"), ("forbidden", "east")]


def test_problems_do_not_repeat_the_name_of_the_cluster() -> None:
    assert describe_problem("east", Exception('cluster "east": no connection')) == "no connection"
    assert describe_problem("east", Exception("cluster east does not answer")) == "does not answer"
    assert describe_problem("east", Exception("forbidden")) == "forbidden"


def test_exit_codes_tell_a_part_from_nothing() -> None:
    assert Answers({"a": 1}).code == 0
    assert Answers({"a": 1}, {"b": "no answer"}).code == 3
    assert Answers[int]({}, {"b": "no answer"}).code == 1


@pytest.mark.parametrize("words", [["pods", "a", "b"], ["pods/"], ["/a"], [""]])
def test_a_target_of_another_form_is_refused(words: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="write KIND"):
        split_words(words)


@pytest.mark.parametrize(
    ("status", "code", "problem"),
    [
        (b'{"status": "Success"}', 0, ""),
        (b'{"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}}', 7, ""),
        (b'{"status": "Failure", "message": "no such container"}', 1, "no such container"),
        (b'{"status": "Failure"}', 1, "the command could not run"),
        (b"[]", 1, "the member did not say how the command ended"),
        (b"{", 1, "the member did not say how the command ended"),
    ],
)
def test_the_error_channel_gives_the_exit_code(status: bytes, code: int, problem: str) -> None:
    assert channels.to_exit(status) == (code, problem)


def test_only_the_newer_protocol_ends_the_input() -> None:
    assert channels.end_of_input("v5.channel.k8s.io") == b"\xff\x00"
    assert channels.end_of_input("v4.channel.k8s.io") is None
    assert channels.to_size(80, 24) == b'\x04{"Width": 80, "Height": 24}'


def test_the_use_of_a_pod_is_the_sum_of_its_containers() -> None:
    containers = [{"usage": {"cpu": "250m", "memory": "1Gi"}}, {"usage": {"cpu": "1500000n"}}]
    use = to_use("east", {"metadata": {"name": "web", "namespace": "shop"}, "containers": containers}, {})
    assert use[:5] == ("east", "shop", "web", 252, 2**30 * 1000)


def test_the_use_of_a_node_has_its_total() -> None:
    node = to_use("east", {"metadata": {"name": "n"}, "usage": {"cpu": "1"}}, {"cpu": "4", "memory": "8Gi"})
    assert node == ("east", "", "n", 1000, -1, 4000, 8 * 2**30 * 1000)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("pods", {"pods": []}),
        ("pods,rs", {"pods": [], "rs": []}),
        ("pod a b a", {"pod": ["a", "b"]}),
        ("deploy,svc web", {"deploy": ["web"], "svc": ["web"]}),
        ("deploy/web svc/web deploy/api", {"deploy": ["web", "api"], "svc": ["web"]}),
        ("deployments.apps/web", {"deployments.apps": ["web"]}),
    ],
)
def test_kinds_and_names_are_read_as_kubectl_reads_them(words: str, wanted: dict[str, list[str]]) -> None:
    assert split_targets(words.split()) == wanted


@pytest.mark.parametrize("words", ["pods,", ",", "pods,,rs", "pod/a b", "a pod/b", "pod/", "/a", "pod/a/b"])
def test_kinds_and_names_that_kubectl_refuses_are_refused(words: str) -> None:
    with pytest.raises(ConfigurationError, match="write KIND"):
        split_targets(words.split())
