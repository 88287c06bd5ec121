"""The annotation: read, written, and told to people."""

import json

import pytest

from federation.planning.automigration.capacityestimate import CapacityEstimate
from federation.planning.automigration.migrationinfo import (
    Failback,
    MigrationInfo,
    describe_changes,
    failback_from_text,
    failback_to_text,
    from_text,
    to_text,
)

DEFAULT = Failback(300.0, 1)


def test_the_annotation_holds_what_schedulers_read_and_what_a_restart_needs() -> None:
    info = MigrationInfo(
        {"west": CapacityEstimate(2, refuted=3, offered=1), "east": CapacityEstimate(0)},
        {"west": 2},
        "t1",
        ready={"west": 1},
    )
    assert json.loads(to_text(info)) == {
        "estimatedCapacity": {"east": 0, "west": 2},
        "scheduledReplicas": {"west": 2},
        "readyReplicas": {"west": 1},
        "offeredReplicas": {"west": 1},
        "refutedRoom": {"west": 3},
        "template": "t1",
    }
    assert from_text(to_text(info)) == info
    assert json.loads(to_text(MigrationInfo(openings={"west": 2})))["openings"] == {"west": 2}
    assert to_text(MigrationInfo()) == '{"scheduledReplicas":{}}'


def test_what_kubeadmiral_wrote_is_understood() -> None:
    info = from_text('{"estimatedCapacity":{"a":1,"b":-1},"scheduledReplicas":{"a":1,"c":3}}')
    assert info == MigrationInfo({"a": CapacityEstimate(1)}, {"a": 1, "c": 3})


def test_openings_are_numbers_and_were_names() -> None:
    assert from_text('{"openings":{"a":2,"b":-1}}') == MigrationInfo(openings={"a": 2})
    assert from_text('{"openings":["a"]}') == MigrationInfo(openings={"a": 1})
    assert from_text('{"openings":["a",3]}') == MigrationInfo()
    assert from_text('{"openings":7}') == MigrationInfo()
    assert MigrationInfo(openings={"a": 7}).without_counts() == MigrationInfo(openings={"a": 1}).without_counts()


@pytest.mark.parametrize(
    "text", [None, "", "{broken", "[]", '{"estimatedCapacity": 3}', '{"estimatedCapacity": {"a": "x"}}']
)
def test_what_cannot_be_read_says_nothing(text: str | None) -> None:
    assert from_text(text) == MigrationInfo()


def test_another_pod_template_refutes_nothing() -> None:
    info = MigrationInfo({"west": CapacityEstimate(1, refuted=3)}, template="t1")
    assert info.for_template("t1") is info
    assert info.for_template("t2") == MigrationInfo({"west": CapacityEstimate(1)}, template="t2")


def test_the_terms_of_coming_back_are_read_from_the_object() -> None:
    assert failback_from_text(failback_to_text("1m30s", 4), DEFAULT) == Failback(90.0, 4)
    for text in (None, "{}", "nonsense", '{"stableFor":"soon","batchSize":1}', '{"stableFor":"1m","batchSize":null}'):
        assert failback_from_text(text, DEFAULT) == DEFAULT


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (None, CapacityEstimate(0), "west can run only 0 of 2 replicas"),
        (CapacityEstimate(2), CapacityEstimate(1), "west can run only 1 of 2 replicas"),
        (CapacityEstimate(0), CapacityEstimate(0, offered=1), "west has capacity again, 1 replica may return"),
        (CapacityEstimate(0, offered=1), CapacityEstimate(1), "west runs 1 replica again"),
        (
            CapacityEstimate(0, offered=1, since_s=1.0),
            CapacityEstimate(0, refuted=1),
            "west still can run only 0 replicas",
        ),
        (CapacityEstimate(2), None, "west has enough capacity again"),
        (CapacityEstimate(0), CapacityEstimate(0, since_s=1.0), ""),
    ],
)
def test_changed_estimates_are_described(old: CapacityEstimate | None, new: CapacityEstimate | None, text: str) -> None:
    def info(estimate: CapacityEstimate | None) -> MigrationInfo:
        return MigrationInfo({} if estimate is None else {"west": estimate})

    assert describe_changes(info(old), info(new), {"west": 2}) == text
