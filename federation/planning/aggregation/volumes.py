"""The aggregated status of PersistentVolumeClaims and PersistentVolumes: the worst phase of all clusters.

What a claim offers is what it has in every cluster: the smallest capacity and the common access modes.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.quantity import parse
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, status_of
from federation.planning.aggregation.mergedconditions import merge_conditions

_CLAIM_PHASES = ("Lost", "Pending", "Bound")
_VOLUME_PHASES = ("Failed", "Pending", "Released", "Available", "Bound")


def merge_claim(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the claim's status, None without a member object."""
    if not members:
        return None
    status: Object = {"phase": _worst_phase(members, _CLAIM_PHASES)}
    bound = [status_of(member) for member in members.values() if status_of(member).get("phase") == "Bound"]
    if capacity := _smallest([each.get("capacity") for each in bound]):
        status["capacity"] = capacity
    modes = [each.get("accessModes") or [] for each in bound]
    if common := [mode for mode in (modes[0] if modes else []) if all(mode in each for each in modes)]:
        status["accessModes"] = common
    if conditions := merge_conditions(source, members, context):
        status["conditions"] = conditions
    return status


def merge_volume(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the volume's status, None without a member object.

    A volume that is being deleted and that no member has any more is bound nowhere: a phase of before would say so for
    ever, and a controller of the host that asks for it would keep the volume.
    """
    previous = status_of(source)
    is_deleted = bool((source.get("metadata") or {}).get("deletionTimestamp"))
    if not members and not (is_deleted and previous.get("phase") == "Bound"):
        return None
    phase = _worst_phase(members, _VOLUME_PHASES) if members else "Released"
    changed = previous.get("lastPhaseTransitionTime") if previous.get("phase") == phase else None
    status: Object = {"phase": phase, "lastPhaseTransitionTime": changed or to_rfc3339(context.now)}
    for cluster in sorted(members):
        reported = status_of(members[cluster])
        if reported.get("phase") == phase and isinstance(reported.get("message"), str):
            status["message"] = f"[{cluster}]: {reported['message']}"
            break
    return status


def _worst_phase(members: Members, phases: tuple[str, ...]) -> str:
    found = {status_of(member).get("phase") for member in members.values()}
    if not found <= set(phases):
        found.add("Pending")  # no phase yet, or one that Kubernetes does not know
    return next(phase for phase in phases if phase in found)


def _smallest(capacities: list[Any]) -> dict[str, str]:
    """Return the smallest amount of each resource that every cluster has."""
    valid = [each for each in capacities if isinstance(each, Mapping)]
    if not valid or len(valid) < len(capacities):
        return {}
    common = set(valid[0]).intersection(*valid)
    found = {}
    for resource in sorted(common):
        try:
            found[resource] = str(min((each[resource] for each in valid), key=lambda amount: parse(amount).nanos))
        except (ValueError, TypeError):
            continue
    return found
