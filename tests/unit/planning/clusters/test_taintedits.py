"""`fedctl taint`, `cordon` and `uncordon`: the taints before and after."""

from datetime import UTC, datetime

import pytest

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ConfigurationError
from federation.planning.clusters.taintedits import (
    TaintEdit,
    apply_edits,
    cordoned,
    parse_edit,
    uncordoned,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GPU = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("dedicated=gpu:NoSchedule", TaintEdit("dedicated", "gpu", "NoSchedule")),
        ("example.com/a:NoExecute", TaintEdit("example.com/a", "", "NoExecute")),
        ("a=:PreferNoSchedule", TaintEdit("a", "", "PreferNoSchedule")),
        ("a:NoExecute-", TaintEdit("a", "", "NoExecute", is_removal=True)),
        ("a=b:NoExecute-", TaintEdit("a", "b", "NoExecute", is_removal=True)),
        ("a-", TaintEdit("a", is_removal=True)),
    ],
)
def test_edits_have_the_syntax_of_kubectl(text: str, edit: TaintEdit) -> None:
    assert parse_edit(text) == edit


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a", "the effect must be one of NoSchedule, PreferNoSchedule, NoExecute"),
        ("a=b", "the effect must be"),
        ("a:noexecute", "the effect must be"),
        ("a:-", "the effect must be"),
        (":NoExecute", "write key=value:Effect"),
        ("-", "write key=value:Effect"),
        ("a b:NoExecute", "write key=value:Effect"),
        ("a=b c:NoExecute", "write key=value:Effect"),
        ("a=b=c:NoExecute", "write key=value:Effect"),
        (f"{names.TAINT_UNREACHABLE}:NoExecute-", "the control plane sets and removes this taint"),
    ],
)
def test_a_malformed_edit_is_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem) as raised:
        parse_edit(text)
    assert repr(text) in str(raised.value)


def test_added_taints_come_last_and_no_execute_gets_its_time() -> None:
    edits = [parse_edit("a:NoExecute"), parse_edit("b=c:NoSchedule")]
    assert apply_edits([GPU], edits, NOW) == [
        GPU,
        {"key": "a", "effect": "NoExecute", "timeAdded": to_rfc3339(NOW)},
        {"key": "b", "value": "c", "effect": "NoSchedule"},
    ]
    assert apply_edits(None, [], NOW) == []


def test_a_taint_that_exists_stays_as_it_is() -> None:
    present = [{"key": "a", "value": None, "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"}]
    assert apply_edits(present, [parse_edit("a:NoExecute")], NOW) == present


def test_another_value_needs_overwrite() -> None:
    edit = parse_edit("dedicated=cpu:NoSchedule")
    with pytest.raises(ConfigurationError, match="use --overwrite"):
        apply_edits([GPU], [edit], NOW)
    assert apply_edits([GPU], [edit], NOW, overwrite=True) == [{**GPU, "value": "cpu"}]


def test_a_removal_takes_one_effect_or_all_and_must_find_something() -> None:
    execute = {"key": "dedicated", "effect": "NoExecute"}
    assert apply_edits([GPU, execute], [parse_edit("dedicated:NoExecute-")], NOW) == [GPU]
    assert apply_edits([GPU, execute], [parse_edit("dedicated-")], NOW) == []
    with pytest.raises(ConfigurationError, match="the cluster has no taint other"):
        apply_edits([GPU], [parse_edit("other-")], NOW)


def test_cordon_adds_one_taint_and_uncordon_also_ends_a_drain() -> None:
    once = cordoned([GPU], NOW)
    unschedulable = {"key": names.TAINT_UNSCHEDULABLE, "effect": "NoSchedule", "timeAdded": to_rfc3339(NOW)}
    assert once == [GPU, unschedulable]
    assert cordoned(once, NOW) == once
    assert cordoned([{**unschedulable, "value": "by hand"}, GPU], NOW) == [GPU, unschedulable]
    drain = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": to_rfc3339(NOW)}
    assert uncordoned([*once, drain]) == [GPU]
    assert uncordoned(None) == []
