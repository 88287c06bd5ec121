"""Actions on a policy whose changes go in waves: approve, pause, resume and abort, as `fedctl rollout` does. Pure.

Approval and abortion are of the change that the form showed, so they never touch a later one.
"""

from collections.abc import Callable, Sequence

from federation.api.resources import POLICIES
from federation.apimachinery.amounts import to_count
from federation.apimachinery.errors import ConfigurationError
from federation.planning.waves.changerules import ChangeRules, current_wave, find_change_rules, waiting_wave
from federation.planning.waves.policychanges import FIELD, ChangeRecord, record_of
from federation.planning.waves.waverecord import Phase
from federation.planning.waves.waverules import REMAINING
from federation.planning.waves.wishes import check_reason, to_abortion, to_approval, to_pause, to_return
from federation.plans.edits import Edit
from federation.web.ui.actions.action import Action, Field, Form, Subject

_GROUP_RESOURCES = frozenset(resource.group_resource for resource in POLICIES)
_UNDERWAY = (Phase.PROGRESSING, Phase.STOPPED)


def _change_of(subject: Subject) -> tuple[ChangeRecord, ChangeRules] | None:
    """Return the last change of a policy and its rules, None for a policy whose changes do not go in waves."""
    if subject.resource.group_resource not in _GROUP_RESOURCES:
        return None
    rules, record = find_change_rules(subject.obj), record_of(subject.obj)
    return None if rules is None or record is None else (record, rules)


def _if(accepts: Callable[[ChangeRecord, ChangeRules], bool]) -> Callable[[Subject], bool]:
    """Return whether an action makes sense for a policy, by its change."""

    def applies(subject: Subject) -> bool:
        found = _change_of(subject)
        return found is not None and accepts(*found)

    return applies


def _known(subject: Subject) -> tuple[ChangeRecord, ChangeRules]:
    found = _change_of(subject)
    if found is None:
        raise ConfigurationError("Its changes reach all objects at once; it has no spec.changeRollout")
    return found


def _waiting(subject: Subject) -> str:
    return waiting_wave(*_known(subject)) or ""


def _approve(subject: Subject, form: Form) -> Edit:
    wave = _waiting(subject)
    _check_revision(subject, form)
    if form.get("wave") != wave:
        raise ConfigurationError("Another wave waits than the one that you saw. Open the page again; nothing was done.")
    record, reason = _known(subject)[0], form.get("reason", "").strip()
    check_reason(record.reason, reason)
    return _wish(subject, to_approval(record.revision, wave, reason))


def _abort(subject: Subject, form: Form) -> Edit:
    _check_revision(subject, form)
    return _wish(subject, to_abortion(_known(subject)[0].revision))


def _roll_back(subject: Subject, form: Form) -> Edit:
    _check_revision(subject, form)
    return _wish(subject, to_return(_known(subject)[0].revision))


def _check_revision(subject: Subject, form: Form) -> None:
    if form.get("revision") != str(_known(subject)[0].revision):
        raise ConfigurationError(
            "The policy has changed again since you opened this page. Look at it; nothing was done."
        )


def _wish(subject: Subject, fields: dict[str, object]) -> Edit:
    return subject.merge({"spec": {FIELD: fields}})


def _revision(subject: Subject) -> Sequence[Field]:
    return (Field("revision", "", "hidden", str(_known(subject)[0].revision)),)


def _approval_text(subject: Subject) -> str:
    record, rules = _known(subject)
    wave = _waiting(subject)
    found = next((each for each in rules.waves if each.name == wave), None)
    who = (
        "all other objects"
        if wave == REMAINING or found is None or found.objects is None
        else (f"at most {to_count(found.objects, 'object')}")
    )
    failed = f" Change {record.revision} has failed before: {record.reason}." if record.phase is Phase.STOPPED else ""
    return f"Wave {wave} of change {record.revision} starts: {who} of the policy get the new version.{failed}"


def _abortion_text(subject: Subject) -> str:
    record, rules = _known(subject)
    current = current_wave(record)
    changed = sum(wave.objects for wave in record.waves if wave.bound)
    if rules.rolls_back:
        return _return_text(subject)
    after = f" after wave {current.name}" if current is not None and current.bound else ""
    return f"No other object gets change {record.revision}{after}. The objects that have it, {changed} by now, keep it."


def _return_text(subject: Subject) -> str:
    record, _ = _known(subject)
    changed = sum(wave.objects for wave in record.waves if wave.bound)
    return (
        f"Change {record.revision} ends. The objects that have it, {changed} by now, return to the policy as it was"
        " before. The spec of the policy stays as it is."
    )


def _approval_fields(subject: Subject) -> Sequence[Field]:
    reason = (Field("reason", "Reason, which stays visible", "text"),) if _known(subject)[0].reason else ()
    return (*_revision(subject), Field("wave", "", "hidden", _waiting(subject)), *reason)


ACTIONS: Sequence[Action] = (
    Action(
        "roll-back-change",
        "Roll back the change",
        "Roll back the change",
        _if(lambda record, rules: record.phase in _UNDERWAY and rules.wishes.roll_back != record.revision),
        _roll_back,
        _return_text,
        _revision,
        is_planned=False,
    ),
    Action(
        "approve-wave",
        "Approve the wave",
        "Approve the wave",
        _if(lambda record, rules: waiting_wave(record, rules) is not None),
        _approve,
        _approval_text,
        _approval_fields,
        is_planned=False,
    ),
    Action(
        "pause-waves",
        "Pause the waves",
        "Pause the waves",
        _if(lambda record, rules: record.phase in _UNDERWAY and not rules.wishes.is_paused),
        lambda subject, _: _wish(subject, to_pause(is_paused=True)),
        lambda _: "No other wave starts until it is resumed. Objects that have the new version keep it.",
        is_planned=False,
    ),
    Action(
        "resume-waves",
        "Resume the waves",
        "Resume the waves",
        _if(lambda _, rules: rules.wishes.is_paused),
        lambda subject, _: _wish(subject, to_pause(is_paused=False)),
        lambda _: "Waves start again as soon as the gates before them hold.",
        is_planned=False,
    ),
    Action(
        "abort-change",
        "Abort the change",
        "Abort the change",
        _if(lambda record, rules: record.phase in _UNDERWAY and rules.wishes.abort != record.revision),
        _abort,
        _abortion_text,
        _revision,
        is_planned=False,
        is_final=True,
    ),
)
"""In the order of their buttons."""
