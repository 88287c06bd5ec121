"""Strategies of Events in both groups; `registry/eventttl.py` deletes expired ones.

events.k8s.io/v1 is validated strictly, v1 loosely (kube-apiserver's `ValidateEventCreate`). Errors have the field names
of v1, as in Kubernetes.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.clock import from_rfc3339, to_rfc3339, to_rfc3339_micro
from federation.apimachinery.fielderrors import Causes, immutable, invalid, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.conversion.eventconversion import from_core, to_core
from federation.apiserver.semantics.strategies.base import Strategy

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

    name_problems = staticmethod(nameformats.path_segment)
    knows_finalizers = False
    allow_create_on_update = True
    names_again = False

    def default(self, obj: Object) -> None:
        _complete(obj)

    def validate(self, obj: Object) -> Causes:
        return _validate(obj, "reportingComponent")


class EventsV1Strategy(Strategy):
    """events.k8s.io/v1 Event: all fields but the series are immutable."""

    name_problems = staticmethod(nameformats.path_segment)
    knows_finalizers = False
    allow_create_on_update = True
    names_again = False

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
            shown = "reportingController" if field == "reportingComponent" else field
            causes += immutable(shown, event.get(field), before.get(field))
        return causes


def _complete(event: Object) -> None:
    """Add the fields that Go writes even if they are empty, and normalize times."""
    for field in ("involvedObject", "source"):
        if event.get(field) is None:
            event[field] = {}
    for field in ("reportingComponent", "reportingInstance"):
        event.setdefault(field, "")
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        event.setdefault(field, None)
    normalize_times(event, ("firstTimestamp", "lastTimestamp"), to_rfc3339)
    normalize_times(event, ("eventTime",), to_rfc3339_micro)
    normalize_times(event.get("series"), ("lastObservedTime",), to_rfc3339_micro)


def _validate(event: Object, controller_field: str) -> Causes:
    """Validate a v1 Event; one with an eventTime must have the fields of events.k8s.io/v1."""
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace") or ""
    if not event.get("eventTime"):
        is_matching = involved == namespace or (not involved and namespace == "default")
        return [] if is_matching else [invalid("involvedObject.namespace", involved, _NOT_MATCHING)]
    causes: Causes = []
    if not involved and namespace not in {"default", "kube-system"}:
        causes.append(invalid("involvedObject.namespace", involved, _NOT_MATCHING))
    controller = event.get("reportingComponent") or ""
    if not controller:
        causes.append(required(controller_field))
    causes += [invalid(controller_field, controller, text) for text in nameformats.qualified_name(controller)]
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


def normalize_times(fields: Any, names: tuple[str, ...], form: Callable[[datetime], str]) -> None:
    """Write times in UTC with the precision of the field's type."""
    for name in names if isinstance(fields, dict) else ():
        text = fields.get(name)
        if not isinstance(text, str):
            continue
        try:
            fields[name] = form(from_rfc3339(text))
        except ValueError:
            continue  # schema validation reports it
