"""Events, under both of their names: they expire (`registry/eventttl.py`) and say little that is checked.

What is written as events.k8s.io/v1 is checked strictly, what is written as v1 as loosely as ever (kube-apiserver's
`ValidateEventCreate`). Field names in errors are those of v1, as Kubernetes has them.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from federation.api.resources import Object
from federation.base.clock import from_rfc3339, to_rfc3339, to_rfc3339_micro
from federation.registry.eventview import from_core, to_core
from federation.registry.strategies.base import Strategy
from federation.registry.validation import names
from federation.registry.validation.fields import Causes, immutable, invalid, required

_NOT_MATCHING = "does not match event.namespace"
_LENGTH_MAX = 128
_MESSAGE_LENGTH_MAX = 1024
_FIXED = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)


class EventStrategy(Strategy):
    """v1 Event."""

    allow_create_on_update = True

    def default(self, obj: Object) -> None:
        _complete(obj)

    def validate(self, obj: Object) -> Causes:
        return _validate(obj, "reportingComponent")


class RegardingEventStrategy(Strategy):
    """events.k8s.io/v1 Event: complete from the start, and only its series changes."""

    allow_create_on_update = True

    def default(self, obj: Object) -> None:
        event = to_core(obj)
        _complete(event)
        obj.update(from_core(event))

    def validate(self, obj: Object) -> Causes:
        event = to_core(obj)
        causes = _validate(event, "reportingController") + _validate_series(event)
        if not event.get("eventTime"):
            causes.append(required("eventTime"))
        if event.get("type") not in {"Normal", "Warning"}:
            causes.append(invalid("type", "", f"has invalid value: {event.get('type') or ''}"))
        for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
            if event.get(field):
                causes.append(invalid(field, "", "needs to be unset"))
        return causes

    def validate_update(self, new: Object, old: Object) -> Causes:
        event, before = to_core(new), to_core(old)
        causes = _validate(event, "reportingController")
        if event.get("series") != before.get("series"):
            causes += _validate_series(event)
        for field in _FIXED:
            causes += immutable(field, event.get(field), before.get(field))
        return causes


def _complete(event: Object) -> None:
    """Fill what Kubernetes writes even when it is empty, and write times as it does."""
    for field in ("involvedObject", "source"):
        if event.get(field) is None:
            event[field] = {}
    for field in ("reportingComponent", "reportingInstance"):
        event.setdefault(field, "")
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(field, None)
    write_times(event, ("firstTimestamp", "lastTimestamp"), to_rfc3339)
    write_times(event, ("eventTime",), to_rfc3339_micro)
    write_times(event.get("series"), ("lastObservedTime",), to_rfc3339_micro)


def _validate(event: Object, controller_field: str) -> Causes:
    """Check a v1 Event; one with an eventTime is of the new sort and must say who reports what."""
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace") or ""
    if not event.get("eventTime"):
        fits = involved == namespace or (not involved and namespace == "default")
        return [] if fits else [invalid("involvedObject.namespace", involved, _NOT_MATCHING)]
    causes: Causes = []
    if not involved and namespace not in {"default", "kube-system"}:
        causes.append(invalid("involvedObject.namespace", involved, _NOT_MATCHING))
    controller = event.get("reportingComponent") or ""
    if not controller:
        causes.append(required(controller_field))
    causes += [invalid(controller_field, controller, text) for text in names.qualified_name(controller)]
    for field in ("reportingInstance", "action", "reason"):
        text = event.get(field) or ""
        if not text:
            causes.append(required(field))
        elif len(text) > _LENGTH_MAX:
            causes.append(invalid(field, "", f"can have at most {_LENGTH_MAX} characters"))
    if len(event.get("message") or "") > _MESSAGE_LENGTH_MAX:
        causes.append(invalid("message", "", f"can have at most {_MESSAGE_LENGTH_MAX} characters"))
    return causes


def _validate_series(event: Object) -> Causes:
    series = event.get("series")
    if not series:
        return []
    causes: Causes = []
    if (series.get("count") or 0) < 2:
        causes.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        causes.append(required("series.lastObservedTime"))
    return causes


def write_times(fields: Any, names_: tuple[str, ...], form: Callable[[datetime], str]) -> None:
    """Write times as Kubernetes does: in UTC, and with as many digits as the field's type has."""
    for name in names_ if isinstance(fields, dict) else ():
        text = fields.get(name)
        if not isinstance(text, str):
            continue
        try:
            fields[name] = form(from_rfc3339(text))
        except ValueError:
            continue  # decoding refuses it
