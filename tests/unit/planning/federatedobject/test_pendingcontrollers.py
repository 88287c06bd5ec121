import pytest

from federation.api import names
from federation.planning.federatedobject import pendingcontrollers

STAGES = ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))


def federated(**annotations: str) -> dict[str, object]:
    return {"metadata": {"annotations": {key.replace("_", "-"): value for key, value in annotations.items()}}}


def test_the_annotation_is_read_without_empty_stages() -> None:
    obj = {"metadata": {"annotations": {names.PENDING_CONTROLLERS: '[[],["a"],[],["b","c"]]'}}}
    assert pendingcontrollers.pending_stages(obj) == (("a",), ("b", "c"))


@pytest.mark.parametrize("value", ["", "x", "{}", '["a"]', "[[1]]", "null"])
def test_a_broken_annotation_is_an_error_that_names_it(value: str) -> None:
    with pytest.raises(pendingcontrollers.PipelineError, match="pending-controllers"):
        pendingcontrollers.parse(value)


def test_a_missing_annotation_is_an_error() -> None:
    with pytest.raises(pendingcontrollers.PipelineError, match="missing"):
        pendingcontrollers.pending_stages({"metadata": {}})


def test_stages_round_trip_through_the_annotation() -> None:
    assert pendingcontrollers.parse(pendingcontrollers.to_annotation(STAGES)) == STAGES
    assert pendingcontrollers.to_annotation(()) == "[]"


def test_dispatch_waits_for_all_stages() -> None:
    assert pendingcontrollers.may_dispatch(())
    assert not pendingcontrollers.may_dispatch(STAGES)


def test_the_pipeline_skips_idle_controllers() -> None:
    obj = {"metadata": {"annotations": {names.IDLE_CONTROLLERS: names.OVERRIDE_CONTROLLER}}}
    effective = pendingcontrollers.without_idle(obj, STAGES)
    assert effective == ((names.GLOBAL_SCHEDULER,),)
    after = pendingcontrollers.advance(effective, names.GLOBAL_SCHEDULER, is_changed=True, pipeline=effective)
    assert after == ()
    assert pendingcontrollers.without_idle({"metadata": {}}, STAGES) == STAGES
