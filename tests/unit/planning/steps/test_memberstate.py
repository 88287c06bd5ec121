"""The state of a workload in one cluster, read from its member object, and steps put into member objects."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.apimachinery.resources import DEPLOYMENTS, STATEFUL_SETS, Object, Resource
from federation.planning.rendering.memberobject import Rendered, finish, template_revision
from federation.planning.steps.memberstate import (
    is_status_change,
    to_departing,
    to_stepped,
    to_target,
    to_unobserved,
    with_status,
)
from federation.planning.steps.steps import Step, Unobserved
from federation.planning.steps.strategy import Limits

OBSERVED = {"observedGeneration": 1, "replicas": 4, "updatedReplicas": 4, "availableReplicas": 3}


def rendered(replicas: int = 4, image: str = "v1", **spec: Any) -> Rendered:
    obj = {"metadata": {"name": "web"}, "spec": {"replicas": replicas, "template": {"image": image}, **spec}}
    return finish(obj, {names.TEMPLATE_REVISION: template_revision(obj)})


def live(status: Object | None = None, replicas: int = 4, image: str = "v1", **spec: Any) -> Object:
    obj = rendered(replicas, image, **spec).object
    return {**obj, "metadata": {**obj["metadata"], "generation": 1}, "status": status}


def test_counts_come_from_spec_and_status() -> None:
    target = to_target(DEPLOYMENTS, "a", rendered(6), live(OBSERVED))
    assert (target.wanted, target.replicas, target.pods, target.available) == (6, 4, 4, 3)
    assert not target.is_updating
    assert not target.has_old_template


@pytest.mark.parametrize(
    "status",
    [None, {}, {"replicas": "4", "availableReplicas": -1}, {"replicas": None, "availableReplicas": True}],
    ids=str,
)
def test_counts_that_are_missing_or_malformed_are_zero(status: Object | None) -> None:
    target = to_target(DEPLOYMENTS, "a", rendered(), live(status))
    assert (target.pods, target.available) == (0, 0)


@pytest.mark.parametrize("replicas", [None, "4", True], ids=str)
def test_replicas_without_a_number_are_one(replicas: Any) -> None:
    assert to_target(DEPLOYMENTS, "a", None, live(OBSERVED, replicas)).replicas == 1


def test_a_member_updates_while_it_has_old_pods_or_has_not_observed_a_template() -> None:
    def is_updating(status: Object, unobserved: Unobserved | None = None, **spec: Any) -> bool:
        return to_target(DEPLOYMENTS, "a", rendered(), live(status, **spec), unobserved=unobserved).is_updating

    assert is_updating({**OBSERVED, "updatedReplicas": 1})
    assert is_updating({**OBSERVED, "observedGeneration": 0})
    assert is_updating({**OBSERVED, "observedGeneration": 0}, Unobserved(4, 4, Limits(1, 1), has_template=True))
    assert not is_updating({**OBSERVED, "observedGeneration": 0}, Unobserved(4, 4, Limits(1, 1)))
    # Additional replicas are no update.
    assert not is_updating({**OBSERVED, "replicas": 3, "updatedReplicas": 3})


def test_pods_below_the_partition_are_no_update() -> None:
    kept = {"updateStrategy": {"rollingUpdate": {"partition": 3}}}
    status = {**OBSERVED, "updatedReplicas": 1}
    assert not to_target(STATEFUL_SETS, "a", rendered(**kept), live(status, **kept)).is_updating
    assert to_target(STATEFUL_SETS, "a", rendered(), live(status)).is_updating


def test_ready_pods_stand_in_for_available_ones_of_old_stateful_set_controllers() -> None:
    status = {"observedGeneration": 1, "replicas": 4, "updatedReplicas": 4, "readyReplicas": 2}
    assert to_target(STATEFUL_SETS, "a", rendered(), live(status)).available == 2
    assert to_target(DEPLOYMENTS, "a", rendered(), live(status)).available == 0


def test_other_replicas_than_the_final_ones_are_drift() -> None:
    drifted = live(OBSERVED)
    drifted["spec"] = {**drifted["spec"], "replicas": 9}
    assert to_target(DEPLOYMENTS, "a", rendered(), drifted, is_written=True).replicas == 4


def test_an_object_without_a_revision_has_an_old_template_if_its_fields_differ() -> None:
    unmarked = live(OBSERVED)
    del unmarked["metadata"]["annotations"]
    assert not to_target(DEPLOYMENTS, "a", rendered(), unmarked).has_old_template
    assert to_target(DEPLOYMENTS, "a", rendered(image="v2"), unmarked).has_old_template


def test_waves_and_pauses_hold_a_template() -> None:
    revision = template_revision(rendered().object)

    def is_held(approved: dict[str, str] | None, **spec: Any) -> bool:
        return to_target(DEPLOYMENTS, "a", rendered(**spec), live(OBSERVED), approved=approved).is_held

    assert not is_held(None)
    assert not is_held({"a": revision})
    assert is_held({})
    assert is_held({"a": "other"})
    assert is_held(None, paused=True)


def test_a_terminating_object_has_no_pods_to_count_on() -> None:
    leaving = live(OBSERVED)
    leaving["metadata"] = {**leaving["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    target = to_target(DEPLOYMENTS, "a", rendered(), leaving)
    assert (target.replicas, target.pods, target.available) == (0, 4, 0)


@pytest.mark.parametrize(
    ("is_steered", "keeps_replicas", "is_leaving", "expected"),
    [
        (True, False, False, True),
        (True, True, False, False),
        # Its successor gets the replicas that the scheduler decides.
        (True, True, True, True),
        (False, False, False, False),
        (False, True, False, False),
        (False, True, True, False),
    ],
)
def test_replicas_of_an_autoscaler_are_not_steered(
    is_steered: bool, keeps_replicas: bool, is_leaving: bool, expected: bool
) -> None:
    present = live(OBSERVED, 7)
    if is_leaving:
        present["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    target = to_target(
        DEPLOYMENTS, "a", rendered(), present, is_steered=is_steered, keeps_replicas=keeps_replicas, is_written=True
    )
    assert target.is_steered is expected
    assert target.wanted == (7 if keeps_replicas and not is_leaving else 4)


def test_the_last_step_is_the_rendered_object_itself() -> None:
    wanted = rendered()
    assert to_stepped(DEPLOYMENTS, wanted, live(OBSERVED, 2), Step(4)) is wanted
    assert to_stepped(DEPLOYMENTS, wanted, None, Step(4)) is wanted


def test_a_cluster_that_waits_for_its_update_is_written_for_other_changes_only() -> None:
    present = live(OBSERVED, strategy={"rollingUpdate": {"maxSurge": 1}})
    wanted = rendered(image="v2", strategy={"rollingUpdate": {"maxSurge": 5}})
    held = to_stepped(DEPLOYMENTS, wanted, present, Step(4, gets_template=False))
    assert held.object["spec"] == present["spec"]
    assert held.hash == present["metadata"]["annotations"][names.TEMPLATE_HASH]
    scaled = to_stepped(DEPLOYMENTS, wanted, present, Step(6, gets_template=False))
    assert scaled.object["spec"] == {**present["spec"], "replicas": 6}
    assert scaled.hash not in (held.hash, wanted.hash)


def of_generation(generation: str, replicas: int = 4, **metadata: Any) -> Rendered:
    obj = {"metadata": {"name": "web", **metadata}, "spec": {"replicas": replicas, "template": {"image": "v1"}}}
    return finish(obj, {names.TEMPLATE_REVISION: template_revision(obj), names.SOURCE_GENERATION: generation})


def test_a_cluster_that_waits_for_its_replicas_is_not_written_for_a_newer_generation_alone() -> None:
    present, wanted = of_generation("1").object, of_generation("2", 6)
    assert (
        to_stepped(DEPLOYMENTS, wanted, present, Step(4)).hash
        == present["metadata"]["annotations"][names.TEMPLATE_HASH]
    )
    assert to_stepped(DEPLOYMENTS, wanted, present, Step(6)) is wanted
    part = to_stepped(DEPLOYMENTS, wanted, present, Step(5))
    assert part.object["spec"]["replicas"] == 5
    assert part.object["metadata"]["annotations"][names.SOURCE_GENERATION] == "2"
    # It is written for any other change at once.
    labelled = of_generation("2", 6, labels={"tier": "web"})
    other = to_stepped(DEPLOYMENTS, labelled, present, Step(4)).object["metadata"]
    assert (other["labels"]["tier"], other["annotations"][names.SOURCE_GENERATION]) == ("web", "2")
    without = to_stepped(DEPLOYMENTS, wanted, of_generation("1", labels={"tier": "web"}).object, Step(4)).object
    assert without["metadata"]["annotations"][names.SOURCE_GENERATION] == "2"


def test_smaller_limits_are_part_of_the_object_and_of_its_hash() -> None:
    stepped = to_stepped(DEPLOYMENTS, rendered(), live(OBSERVED), Step(4, limits=Limits(1, 0)))
    assert stepped.object["spec"]["strategy"] == {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    assert stepped.hash == stepped.object["metadata"]["annotations"][names.TEMPLATE_HASH] != rendered().hash


def test_a_member_without_an_update_is_not_paused() -> None:
    wanted = rendered(paused=True)
    assert (
        "paused"
        not in to_stepped(DEPLOYMENTS, wanted, live(OBSERVED), Step(4, scales_while_paused=True)).object["spec"]
    )
    assert to_stepped(DEPLOYMENTS, wanted, live(OBSERVED), Step(4)) is wanted


def test_a_departing_object_keeps_everything_but_its_replicas() -> None:
    present = live(OBSERVED, ordinals={"start": 1000})
    departing = to_departing(present, STATEFUL_SETS, 2).object
    assert departing["spec"] == {**present["spec"], "replicas": 2}
    assert "generation" not in departing["metadata"]
    assert "status" not in departing


def test_unobserved_writes_add_up() -> None:
    first = to_unobserved(DEPLOYMENTS, None, live(OBSERVED, 4), rendered(2).object)
    assert (first.low, first.high, first.has_template) == (2, 4, False)
    second = to_unobserved(DEPLOYMENTS, first, live(OBSERVED, 2), rendered(3, "v2").object)
    assert (second.low, second.high, second.has_template) == (2, 4, True)
    assert second.limits == Limits(1, 1)


_COUNTS = st.integers(0, 6)
_STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "observedGeneration": st.integers(0, 2),
        "replicas": _COUNTS,
        "updatedReplicas": _COUNTS,
        "readyReplicas": _COUNTS,
        "availableReplicas": st.one_of(_COUNTS, st.none()),
    },
)
_UNOBSERVED = st.sampled_from([None, Unobserved(2, 4, Limits(1, 0)), Unobserved(1, 4, Limits(1, 1), has_template=True)])


@given(
    st.sampled_from([DEPLOYMENTS, STATEFUL_SETS]),
    _STATUSES,
    _STATUSES,
    _UNOBSERVED,
    _UNOBSERVED,
    st.booleans(),
    st.booleans(),
)
def test_a_target_with_a_newer_status_is_the_target_of_the_newer_object(
    resource: Resource,
    old: Object,
    new: Object,
    sent: Unobserved | None,
    still_sent: Unobserved | None,
    is_leaving: bool,
    has_left: bool,
) -> None:
    before, after, wanted = live(old), live(new), None if has_left else rendered(6, "v2")
    if is_leaving:
        before["metadata"]["deletionTimestamp"] = after["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert is_status_change(before, after)
    target = to_target(resource, "a", wanted, before, unobserved=sent)
    expected = to_target(resource, "a", wanted, after, unobserved=still_sent)
    assert with_status(target, resource, after, still_sent) == expected


def test_what_is_written_to_a_member_object_is_no_change_of_its_status() -> None:
    old = live(OBSERVED)
    metadata = old["metadata"]
    assert is_status_change(
        old, {**old, "metadata": {**metadata, "annotations": {**metadata["annotations"], "a": "b"}}}
    )
    for change in ({"generation": 2}, {"uid": "other"}, {"deletionTimestamp": "now"}, {"annotations": {}}):
        assert not is_status_change(old, {**old, "metadata": {**metadata, **change}})


def test_a_change_of_an_object_without_generations_may_be_one_of_its_spec() -> None:
    old = live(OBSERVED)
    metadata = {key: value for key, value in old["metadata"].items() if key != "generation"}
    assert not is_status_change({**old, "metadata": metadata}, {**old, "metadata": metadata})
