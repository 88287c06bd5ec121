"""Fields of others that keep an object from running as it is wanted."""

from typing import Any

import pytest

from federation.planning.drift.fields import FIELDS_MAX
from federation.planning.drift.foreign import describe_foreign, foreign_fields


def a_workload(pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "web", "image": "web:1"}]
    return {"spec": {"replicas": 3, "template": {"spec": {"containers": containers, **(pod or {})}}, **spec}}


WANTED = a_workload({"nodeSelector": {"disk": "ssd"}})


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (WANTED, ()),
        (a_workload(), ()),
        ({"spec": "malformed"}, ()),
        ({}, ()),
        (a_workload(paused=True), ("spec.paused",)),
        (a_workload(paused=False), ()),
        (a_workload(progressDeadlineSeconds=600), ()),
        (
            a_workload({"nodeSelector": {"disk": "ssd", "zone": "x"}, "affinity": {"nodeAffinity": {}}}),
            ("spec.template.spec.affinity", "spec.template.spec.nodeSelector.zone"),
        ),
        (a_workload({"containers": [{"name": "web"}, {"name": "spy"}]}), ("spec.template.spec.containers[spy]",)),
        (a_workload({"initContainers": [{"name": "wait"}, "x"]}), ("spec.template.spec.initContainers[wait]",)),
        (a_workload({"containers": [{"name": "web", "env": [{"name": "A"}]}]}), ()),
    ],
)
def test_what_others_set_is_named_if_it_decides_where_and_whether_pods_run(
    live: Any, expected: tuple[str, ...]
) -> None:
    assert foreign_fields(WANTED, live) == expected


def test_fields_without_a_value_of_ours_and_lists_without_keys_are_compared_too() -> None:
    assert foreign_fields({"spec": {}}, a_workload({"nodeName": "a"}, suspend=True)) == ("spec.suspend",)
    unnamed = a_workload({"containers": [{"image": "x"}]})
    assert foreign_fields(unnamed, a_workload()) == ()


def test_no_more_fields_are_named_than_a_message_has_room_for() -> None:
    live = a_workload({"nodeSelector": {f"k{at:02}": "v" for at in range(40)}})
    assert len(foreign_fields(WANTED, live)) == FIELDS_MAX


def test_a_sentence_names_them() -> None:
    assert describe_foreign(()) == ""
    assert describe_foreign(("spec.paused",)) == "somebody set spec.paused there, which the federation leaves alone"
