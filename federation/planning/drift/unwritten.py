"""Fields of a template that nobody wrote: the host's API server has filled in Kubernetes' default. Pure.

A member fills in the same default by itself, so what somebody there makes of the field stands. Values that are no
default of Kubernetes count as written, whoever wrote them: the host's admission may want them everywhere. A manager
that applies on the server's side owns what it wrote. kubectl's client-side apply owns the defaults, too, but its own
record of what was applied tells them apart. Fields of all other managers count as written.

Decision: docs/decisions/0150-defaults-of-the-host-are-nobodys-wish.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.wellknown import LAST_APPLIED_CONFIGURATION
from federation.planning.drift.fields import Field, Step, is_owned, managers_entries, value_at
from federation.planning.rendering.drift import find_item

_DEFAULTS: Final[Mapping[str, tuple[Any, ...]]] = {
    # pods
    "dnsPolicy": ("ClusterFirst",),
    "enableServiceLinks": (True,),
    "imagePullPolicy": ("IfNotPresent",),
    "preemptionPolicy": ("PreemptLowerPriority",),
    "restartPolicy": ("Always",),
    "schedulerName": ("default-scheduler",),
    "terminationGracePeriodSeconds": (30,),
    "terminationMessagePath": ("/dev/termination-log",),
    "terminationMessagePolicy": ("File",),
    "defaultMode": (420,),
    # probes
    "failureThreshold": (3,),
    "periodSeconds": (10,),
    "successThreshold": (1,),
    "timeoutSeconds": (1,),
    "scheme": ("HTTP",),
    # workloads
    "podManagementPolicy": ("OrderedReady",),
    "progressDeadlineSeconds": (600,),
    "revisionHistoryLimit": (10,),
    "whenDeleted": ("Retain",),
    "whenScaled": ("Retain",),
    # jobs
    "backoffLimit": (6,),
    "concurrencyPolicy": ("Allow",),
    "failedJobsHistoryLimit": (1,),
    "podReplacementPolicy": ("TerminatingOrFailed",),
    "successfulJobsHistoryLimit": (3,),
    # services and volumes
    "externalTrafficPolicy": ("Cluster",),
    "internalTrafficPolicy": ("Cluster",),
    "sessionAffinity": ("None",),
    "volumeMode": ("Filesystem",),
}
"""Kubernetes' defaults by the name of the field. A name with another default elsewhere is harmless: somebody must have
left the field out, too. Limits of a rollout are missing, because one budget for all clusters depends on them."""


def may_be_default(wanted: Mapping[str, Any], field: Field) -> bool:
    """Return whether the wanted value is Kubernetes' default of a field of this name."""
    name, value = field.steps[-1], value_at(wanted, field.steps)
    defaults = _DEFAULTS.get(name, ()) if isinstance(name, str) else ()
    return any(type(value) is type(default) and value == default for default in defaults)


def find_unwritten(wanted: Mapping[str, Any], source: Mapping[str, Any], fields: Sequence[Field]) -> tuple[Field, ...]:
    """Return those of the fields that are defaults which nobody wrote in the host's object.

    A value that differs from the host's is an override's, so it was written.
    """
    if not source["metadata"].get("managedFields"):
        return ()
    return tuple(
        field
        for field in fields
        if may_be_default(wanted, field)
        and value_at(source, field.steps) == value_at(wanted, field.steps)
        and not _is_written(source, field.steps)
    )


def _is_written(source: Mapping[str, Any], steps: Sequence[Step]) -> bool:
    applied = parse_object((source["metadata"].get("annotations") or {}).get(LAST_APPLIED_CONFIGURATION, ""))
    for entry in managers_entries(source):
        if not is_owned(entry, steps) or entry.get("subresource") == "status":
            continue
        is_client_side = is_owned(entry, ("metadata", "annotations", LAST_APPLIED_CONFIGURATION))
        if applied is None or not is_client_side or value_at(applied, steps) is not None:
            return True
    return False


def without(value: Any, steps: Sequence[Step], *, field: str = "") -> Any:
    """Return the value without what is at the steps; nothing is changed in place."""
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if not isinstance(value, Mapping) or step not in value:
            return value
        if not rest:
            return {key: each for key, each in value.items() if key != step}
        return {**value, step: without(value[step], rest, field=step)}
    held = find_item(step, value, field) if isinstance(value, list) else None
    return value if held is None else [without(each, rest) if each is held else each for each in value]
