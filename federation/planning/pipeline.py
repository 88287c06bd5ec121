"""The pipeline that a federated object walks through before it is dispatched (spec §2.4).

The annotation `pending-controllers` holds a list of stages; the controllers of a stage may act in any order, the next
stage waits for all of them. Dispatch (sync) waits for the empty list. This module owns reading, writing and advancing
that value; who sets it in the first place is `planning/federation.py`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from federation.api import names

Stages = tuple[tuple[str, ...], ...]
"""Stages in order, each a set of controllers; a normalised value has no empty stage."""


class PipelineError(ValueError):
    """The annotation is missing, is not JSON, or is not a list of lists of strings."""


def normalise(stages: Iterable[Iterable[str]]) -> Stages:
    """Return the stages without the empty ones."""
    return tuple(stage for stage in map(tuple, stages) if stage)


@lru_cache(maxsize=1024)
def parse(value: str) -> Stages:
    """Return the normalised stages of the annotation's text; PipelineError when it is no list of lists of strings."""
    try:
        stages = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise PipelineError(f"{names.PENDING_CONTROLLERS}: {error}") from error
    if not _is_stages(stages):
        raise PipelineError(f"{names.PENDING_CONTROLLERS}: {value!r} is not a list of lists of names")
    return normalise(stages)


def _is_stages(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(stage, list) and all(isinstance(name, str) for name in stage) for stage in value
    )


def effective(obj: Mapping[str, Any], pipeline: Sequence[Sequence[str]]) -> Stages:
    """Return the type's pipeline without the controllers that are idle for this federated object.

    Pass the result as `pipeline` to `after_acting`. The federate controller knows when no override policy can apply and
    says so in `names.IDLE_CONTROLLERS`; without that, every object would cost one more write only to say "not mine".
    """
    idle = (obj.get("metadata", {}).get("annotations") or {}).get(names.IDLE_CONTROLLERS)
    return without(pipeline, idle.split(",")) if idle else normalise(pipeline)


def without(pipeline: Iterable[Iterable[str]], controllers: Collection[str]) -> Stages:
    """Return the stages without the controllers."""
    return normalise(tuple(name for name in stage if name not in controllers) for stage in pipeline)


@lru_cache(maxsize=1024)
def to_annotation(stages: Stages) -> str:
    """Return the annotation's text: compact JSON, as KubeAdmiral writes it."""
    return orjson.dumps([list(stage) for stage in stages]).decode()


def pending(obj: Mapping[str, Any]) -> Stages:
    """Return the pending stages of a federated object; PipelineError when the annotation is missing or invalid."""
    value = (obj.get("metadata", {}).get("annotations") or {}).get(names.PENDING_CONTROLLERS)
    if value is None:
        raise PipelineError(f"{names.PENDING_CONTROLLERS}: the annotation is missing")
    return parse(value)


def may_act(stages: Stages, controller: str) -> bool:
    """Say whether it is the controller's turn: nobody is pending, or it is in the first stage."""
    return not stages or controller in stages[0]


def is_turn_of(obj: Mapping[str, Any], controller: str, pipeline: Sequence[Sequence[str]]) -> bool:
    """Say whether the type's pipeline has the controller and it may act on the federated object now.

    An annotation that somebody broke is nobody's turn: the federate controller's next write cures it.
    """
    if not any(controller in stage for stage in pipeline):
        return False
    try:
        return may_act(pending(obj), controller)
    except PipelineError:
        return False


def may_dispatch(stages: Stages) -> bool:
    """Say whether nothing is pending any more, so that the object may go to its clusters."""
    return not stages


def is_pending(stages: Stages, controller: str) -> bool:
    """Say whether the controller has something to remove from the first stage."""
    return bool(stages) and controller in stages[0]


def after_acting(stages: Stages, controller: str, *, is_changed: bool, pipeline: Sequence[Sequence[str]]) -> Stages:
    """Return what is pending after the controller acted.

    It leaves the first stage. When it changed the object (`is_changed`), everything behind its own stage in the type's
    `pipeline` has to look again, whatever was still pending there.
    """
    current, rest = (stages[0], stages[1:]) if stages else ((), ())
    remaining = tuple(name for name in current if name != controller)
    return normalise((remaining, *(downstream(pipeline, controller) if is_changed else rest)))


def downstream(pipeline: Sequence[Sequence[str]], controller: str) -> Stages:
    """Return the stages behind the controller's own, nothing when the type does not know the controller."""
    for index, stage in enumerate(pipeline):
        if controller in stage:
            return normalise(pipeline[index + 1 :])
    return ()
