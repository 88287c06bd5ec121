"""The annotation: read, written, and told to people."""

import json

import pytest

from federation.planning.automigration.belief import Belief
from federation.planning.automigration.info import (
    Failback,
    Info,
    describe,
    failback_from_text,
    failback_to_text,
    from_text,
    to_text,
)

DEFAULT = Failback(300.0, 1)


def test_the_annotation_holds_what_schedulers_read_and_what_a_restart_needs() -> None:
    info = Info({"west": Belief(2, refuted=3, offered=1), "east": Belief(0)}, {"west": 2}, "t1", ready={"west": 1})
    assert json.loads(to_text(info)) == {
        "estimatedCapacity": {"east": 0, "west": 2},
        "scheduledReplicas": {"west": 2},
        "readyReplicas": {"west": 1},
        "offeredReplicas": {"west": 1},
        "refutedRoom": {"west": 3},
        "template": "t1",
    }
    assert from_text(to_text(info)) == info
    assert json.loads(to_text(Info(openings={"west": 2})))["openings"] == {"west": 2}
    assert to_text(Info()) == '{"scheduledReplicas":{}}'


def test_what_kubeadmiral_wrote_is_understood() -> None:
    info = from_text('{"estimatedCapacity":{"a":1,"b":-1},"scheduledReplicas":{"a":1,"c":3}}')
    assert info == Info({"a": Belief(1)}, {"a": 1, "c": 3})


def test_openings_are_numbers_and_were_names() -> None:
    assert from_text('{"openings":{"a":2,"b":"x"}}') == Info(openings={"a": 2})
    assert from_text('{"openings":["a",3]}') == Info(openings={"a": 1})
    assert from_text('{"openings":7}') == Info()
    assert Info(openings={"a": 7}).without_counts() == Info(openings={"a": 1}).without_counts()


@pytest.mark.parametrize(
    "text", [None, "", "{broken", "[]", '{"estimatedCapacity": 3}', '{"estimatedCapacity": {"a": "x"}}']
)
def test_what_cannot_be_read_says_nothing(text: str | None) -> None:
    assert from_text(text) == Info()


def test_another_pod_template_refutes_nothing() -> None:
    info = Info({"west": Belief(1, refuted=3)}, template="t1")
    assert info.for_template("t1") is info
    assert info.for_template("t2") == Info({"west": Belief(1)}, template="t2")


def test_the_terms_of_coming_back_are_read_from_the_object() -> None:
    assert failback_from_text(failback_to_text("1m30s", 4), DEFAULT) == Failback(90.0, 4)
    for text in (None, "{}", "nonsense", '{"stableFor":"soon","batchSize":1}', '{"stableFor":"1m","batchSize":null}'):
        assert failback_from_text(text, DEFAULT) == DEFAULT


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (None, Belief(0), "west can run only 0 of 2 replicas"),
        (Belief(2), Belief(1), "west can run only 1 of 2 replicas"),
        (Belief(0), Belief(0, offered=1), "west has room again, 1 replica may come back"),
        (Belief(0, offered=1), Belief(1), "west runs 1 replica again"),
        (Belief(0, offered=1, since_s=1.0), Belief(0, refuted=1), "west still can run only 0 replicas"),
        (Belief(2), None, "west has enough room again"),
        (Belief(0), Belief(0, since_s=1.0), ""),
    ],
)
def test_people_are_told_what_changed(old: Belief | None, new: Belief | None, text: str) -> None:
    def info(belief: Belief | None) -> Info:
        return Info({} if belief is None else {"west": belief})

    assert describe(info(old), info(new), {"west": 2}) == text
