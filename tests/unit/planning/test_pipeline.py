import pytest

from federation.api import names
from federation.planning import pipeline

STAGES = ((names.GLOBAL_SCHEDULER,), (names.OVERRIDE_CONTROLLER,))


def federated(**annotations: str) -> dict[str, object]:
    return {"metadata": {"annotations": {key.replace("_", "-"): value for key, value in annotations.items()}}}


def test_the_annotation_is_read_without_empty_stages() -> None:
    obj = {"metadata": {"annotations": {names.PENDING_CONTROLLERS: '[[],["a"],[],["b","c"]]'}}}
    assert pipeline.pending(obj) == (("a",), ("b", "c"))


@pytest.mark.parametrize("value", ["", "x", "{}", '["a"]', "[[1]]", "null"])
def test_a_broken_annotation_is_an_error_that_names_it(value: str) -> None:
    with pytest.raises(pipeline.PipelineError, match="pending-controllers"):
        pipeline.parse(value)


def test_a_missing_annotation_is_an_error() -> None:
    with pytest.raises(pipeline.PipelineError, match="missing"):
        pipeline.pending({"metadata": {}})


def test_what_is_written_is_what_is_read() -> None:
    assert pipeline.parse(pipeline.to_annotation(STAGES)) == STAGES
    assert pipeline.to_annotation(()) == "[]"


def test_dispatch_waits_for_everybody() -> None:
    assert pipeline.may_dispatch(())
    assert not pipeline.may_dispatch(STAGES)
    assert pipeline.is_pending(STAGES, names.GLOBAL_SCHEDULER)
    assert not pipeline.is_pending(STAGES, names.OVERRIDE_CONTROLLER)


def test_nobody_waits_for_an_idle_controller() -> None:
    obj = {"metadata": {"annotations": {names.IDLE_CONTROLLERS: names.OVERRIDE_CONTROLLER}}}
    effective = pipeline.effective(obj, STAGES)
    assert effective == ((names.GLOBAL_SCHEDULER,),)
    after = pipeline.after_acting(effective, names.GLOBAL_SCHEDULER, is_changed=True, pipeline=effective)
    assert after == ()
    assert pipeline.effective({"metadata": {}}, STAGES) == STAGES
