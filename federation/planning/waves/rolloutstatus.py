"""The state of a rollout, read from the status of its FederatedRollout. Pure.

`features/waves/rules/report.py` writes the status. `fedctl rollout` and the web UI read it, too.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339, is_ahead
from federation.planning.waves.waverecord import (
    ClusterRecord,
    Phase,
    Record,
    WaveRecord,
    current_wave,
    following_wave,
)

_PHASES: Mapping[str, Phase] = {phase.value: phase for phase in Phase}


def record_of(status: Mapping[str, Any] | None, now: datetime | None = None) -> Record:
    """Return the state that a status describes; the initial state without one, and for one that is not ours.

    With `now`, a time that a process with a wrong clock wrote in the future is `now`: pauses would not end before it.
    """
    held = status or {}
    return Record(
        int(held.get("revision") or 0),
        _PHASES.get(held.get("state") or "", Phase.COMPLETE),
        {
            entry["name"]: ClusterRecord(
                entry.get("wave") or "",
                entry["target"],
                entry["good"],
                is_changed=bool(entry.get("changed")),
                started_at=_time(entry.get("startedAt"), now),
                disrupted_since=_time(entry.get("disruptedSince"), now),
                stopped_at=_time(entry.get("stoppedAt"), now),
                broken_since=_time(entry.get("brokenSince"), now),
            )
            for entry in held.get("clusters") or ()
        },
        tuple(_wave_record(entry, now) for entry in held.get("waves") or ()),
        held.get("failure") or "",
        _time(held.get("pausedSince"), now),
        {entry["revision"]: entry["earlier"] for entry in held.get("replaced") or ()},
    )


def waiting_wave(state: Mapping[str, Any]) -> str | None:
    """Return the wave that an approval lets start, None if none waits for one."""
    record = record_of(state)
    current = current_wave(record)
    if current is None:
        return None
    if record.phase is Phase.STOPPED:
        order = [wave.name for wave in record.waves]
        following = order[order.index(current.name) + (current.started_at is not None) :]
        return following[0] if following else None
    waits = {wave["name"] for wave in state.get("waves") or () if wave["state"] == "WaitingForApproval"}
    if current.name not in waits:
        return None
    return following_wave(record, current.name) or current.name


def _wave_record(entry: Mapping[str, Any], now: datetime | None) -> WaveRecord:
    return WaveRecord(
        entry["name"],
        _time(entry.get("startedAt"), now),
        _time(entry.get("gateHeldSince"), now),
        is_done=entry.get("state") == "Complete",
    )


def _time(text: str | None, now: datetime | None) -> datetime | None:
    moment = from_rfc3339(text) if text else None
    return now if moment is not None and now is not None and is_ahead(moment, now) else moment
