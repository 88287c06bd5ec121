"""The pipeline of controllers that process a federated object before its dispatch (docs/reference/federation.md).

The annotation `pending-controllers` holds a list of stages. The controllers of one stage act in any order; the next
stage waits for all of them, and sync waits for the empty list. This module parses, writes and advances that value;
`builder.py` sets the initial one. Pure.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.apimachinery.errors import InvalidInput

Stages = tuple[tuple[str, ...], ...]
"""Stages in order, each a set of controllers; a normalised value has no empty stage."""


_PENDING = AnnotationRecord(names.PENDING_CONTROLLERS, Stages)


class PipelineError(InvalidInput):
    """The annotation is missing or is not a JSON list of lists of strings."""


def normalise(stages: Iterable[Iterable[str]]) -> Stages:
    """Return the stages without the empty ones."""
    return tuple(stage for stage in map(tuple, stages) if stage)


@lru_cache(maxsize=1024)
def parse(value: str) -> Stages:
    """Return the normalised stages of the annotation's value; PipelineError when it is malformed."""
    stages = _PENDING.read(value)
    if stages is None:
        raise PipelineError(f"{names.PENDING_CONTROLLERS}: {value!r} is not a list of lists of names")
    return normalise(stages)


def pending_stages(obj: Mapping[str, Any]) -> Stages:
    """Return the pending stages of a federated object; PipelineError when the annotation is missing or malformed."""
    value = (obj.get("metadata", {}).get("annotations") or {}).get(names.PENDING_CONTROLLERS)
    if value is None:
        raise PipelineError(f"{names.PENDING_CONTROLLERS}: the annotation is missing")
    return parse(value)


@lru_cache(maxsize=1024)
def to_annotation(stages: Stages) -> str:
    """Return the annotation's value: compact JSON, as KubeAdmiral writes it."""
    return _PENDING.text(stages)


def without(pipeline: Iterable[Iterable[str]], controllers: Collection[str]) -> Stages:
    """Return the stages without the controllers."""
    return normalise(tuple(name for name in stage if name not in controllers) for stage in pipeline)


def without_idle(obj: Mapping[str, Any], pipeline: Sequence[Sequence[str]]) -> Stages:
    """Return the type's pipeline without the controllers that are idle for this federated object.

    Pass the result as `pipeline` to `advance`. The federate controller marks the override controller as idle where no
    policy can apply. Without that, every object would cost one more write that only removes the controller.
    """
    idle = (obj.get("metadata", {}).get("annotations") or {}).get(names.IDLE_CONTROLLERS)
    return without(pipeline, idle.split(",")) if idle else normalise(pipeline)


def may_act(stages: Stages, controller: str) -> bool:
    """Return True if the controller is in the first pending stage, or no stage is pending."""
    return not stages or controller in stages[0]


def is_due(obj: Mapping[str, Any], controller: str) -> bool:
    """Return True if no earlier stage is pending for the object: a controller of its type's pipeline may act.

    While the annotation is malformed no controller may act; the federate controller's next write repairs it.
    """
    try:
        return may_act(pending_stages(obj), controller)
    except PipelineError:
        return False


def dependencies_fulfilled(obj: Mapping[str, Any], controller: str, pipeline: Sequence[Sequence[str]]) -> bool:
    """Return True if the type's pipeline has the controller and all earlier stages are done for the object."""
    return any(controller in stage for stage in pipeline) and is_due(obj, controller)


def is_at_head(obj: Mapping[str, Any], controller: str) -> bool:
    """Return True if the controller is in the first pending stage of the object."""
    try:
        stages = pending_stages(obj)
    except PipelineError:
        return False
    return bool(stages) and controller in stages[0]


def is_ready_for_dispatch(obj: Mapping[str, Any]) -> bool:
    """Return True if no controller is pending for the object."""
    try:
        return may_dispatch(pending_stages(obj))
    except PipelineError:
        return False


def may_dispatch(stages: Stages) -> bool:
    """Return True if no controller is pending."""
    return not stages


def advance(stages: Stages, controller: str, *, is_changed: bool, pipeline: Sequence[Sequence[str]]) -> Stages:
    """Return the pending stages after the controller acted.

    The controller leaves the first stage. If it changed the object (`is_changed`), all stages behind its own in the
    type's `pipeline` become pending again.
    """
    current, rest = (stages[0], stages[1:]) if stages else ((), ())
    remaining = tuple(name for name in current if name != controller)
    return normalise((remaining, *(downstream(pipeline, controller) if is_changed else rest)))


def downstream(pipeline: Sequence[Sequence[str]], controller: str) -> Stages:
    """Return the stages behind the controller's own, none when the pipeline does not have the controller."""
    for index, stage in enumerate(pipeline):
        if controller in stage:
            return normalise(pipeline[index + 1 :])
    return ()
