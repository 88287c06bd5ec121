"""Events of rollouts and of changes of policies: of their phases, and of waves that start or are complete."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Protocol, TypeVar

from federation.apimachinery.resources import Object
from federation.features.waves import names as wavenames
from federation.planning.waves.waverecord import Phase
from federation.runtime.events import NORMAL, WARNING, Recorder

_EVENTS = {
    Phase.COMPLETE: (NORMAL, wavenames.EVENT_ROLLOUT_COMPLETE),
    Phase.PROGRESSING: (NORMAL, wavenames.EVENT_ROLLOUT_STARTED),
    Phase.STOPPED: (WARNING, wavenames.EVENT_ROLLOUT_STOPPED),
    Phase.ROLLING_BACK: (WARNING, wavenames.EVENT_ROLLING_BACK),
    Phase.ROLLED_BACK: (WARNING, wavenames.EVENT_ROLLED_BACK),
}


class Wave(Protocol):
    """The progress of a wave, of clusters or of objects."""

    @property
    def name(self) -> str: ...
    @property
    def started_at(self) -> datetime | None: ...
    @property
    def is_done(self) -> bool: ...


W = TypeVar("W", bound=Wave)


def report_phase(recorder: Recorder, obj: Object, phase: Phase, what: str, reason: str) -> None:
    """Emit the Event of a phase that has begun: what it is about, and the reason if there is one."""
    type_, event = _EVENTS[phase]
    recorder.event(obj, type_, event, f"{what}: {reason}" if reason else what)


def report_waves(
    recorder: Recorder, obj: Object, before: Iterable[W], after: Iterable[W], started: Callable[[W], str]
) -> None:
    """Emit Events for the waves that have started or are complete; `started` returns the text of the former."""
    earlier = {wave.name: wave for wave in before}
    for wave in after:
        known = earlier.get(wave.name)
        if wave.started_at is not None and (known is None or known.started_at is None):
            recorder.event(obj, NORMAL, wavenames.EVENT_WAVE_STARTED, started(wave))
        if wave.is_done and (known is None or not known.is_done):
            recorder.event(obj, NORMAL, wavenames.EVENT_WAVE_COMPLETE, f"wave {wave.name} is complete")
