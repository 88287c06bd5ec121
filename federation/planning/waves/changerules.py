"""The rules for changes of a policy in waves of objects: `spec.changeRollout`, compiled. Pure.

Reference: docs/reference/policy-changes.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from federation.planning.waves.policychanges import FIELD, ChangeRecord, ChangeWave
from federation.planning.waves.waverecord import Phase
from federation.planning.waves.waverules import REMAINING, Objective, to_objectives
from federation.planning.waves.wishes import Wishes, read_wishes

_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class ObjectWave:
    """Objects that get a change together: at most `objects` that match the labels, None for all of them.

    `is_paused`: it waits for approval before it starts.
    """

    name: str
    objects: int | None = None
    labels: tuple[tuple[str, str], ...] = ()
    is_health_required: bool = True
    soak_s: float = 0.0
    objectives: tuple[Objective, ...] = ()
    is_paused: bool = False
    timeout_s: float = _TIMEOUT_S


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """The waves, the last of which is `REMAINING`; what happens after a failure; wishes about the present change."""

    waves: tuple[ObjectWave, ...]
    rolls_back: bool = True
    wishes: Wishes = field(default_factory=Wishes)


def find_change_rules(policy: Mapping[str, Any]) -> ChangeRules | None:
    """Return the rules of a policy, None without or with malformed ones."""
    entry = (policy.get("spec") or {}).get(FIELD)
    if not entry or not entry.get("waves"):
        return None
    try:
        waves = [*map(_wave, entry["waves"]), ObjectWave(REMAINING)]
        for index, wave in enumerate(entry["waves"], 1):
            if wave.get("pauseAfter"):
                waves[index] = replace(waves[index], is_paused=True)
        return ChangeRules(tuple(waves), entry.get("onFailure") != "Pause", read_wishes(entry))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def current_wave(record: ChangeRecord) -> ChangeWave | None:
    """Return the first wave that is not done, None if all are."""
    return next((wave for wave in record.waves if not wave.is_done), None)


def waiting_wave(record: ChangeRecord, rules: ChangeRules) -> str | None:
    """Return the wave that an approval lets start, or lets end after a failure; None if none waits."""
    current = current_wave(record)
    if current is None or record.phase not in (Phase.PROGRESSING, Phase.STOPPED):
        return None
    if record.phase is Phase.STOPPED:
        order = [wave.name for wave in record.waves]
        following = order[order.index(current.name) + bool(current.bound) :]
        return following[0] if following else current.name
    is_waiting = rule_of(rules, current.name).is_paused and not current.bound
    return current.name if is_waiting and not is_approved(record, rules, current.name) else None


def rule_of(rules: ChangeRules, name: str) -> ObjectWave:
    """Return the rules of a wave; one that its policy has lost meanwhile has the default gate."""
    return next((wave for wave in rules.waves if wave.name == name), ObjectWave(name))


def is_approved(record: ChangeRecord, rules: ChangeRules, wave: str) -> bool:
    """Return whether a wave, or one after it, is approved for this change."""
    if rules.wishes.approved_revision != record.revision:
        return False
    order = [each.name for each in record.waves]
    return rules.wishes.approved_wave in order[order.index(wave) :]


def _wave(entry: Mapping[str, Any]) -> ObjectWave:
    gate, objects = entry.get("gate") or {}, entry.get("objects")
    return ObjectWave(
        str(entry["name"]),
        None if objects is None else int(objects),
        tuple(sorted((entry.get("objectSelector") or {}).items())),
        gate.get("healthy") is not False,
        float(gate.get("soakSeconds") or 0),
        to_objectives(gate),
        bool(entry.get("pause")),
        float(entry.get("timeoutSeconds") or _TIMEOUT_S),
    )
