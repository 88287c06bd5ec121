"""Find the autoscaler in a member that owns the replicas of an object. Pure.

KEDA acts through a HorizontalPodAutoscaler too. Members write these objects: what is malformed targets nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.planning.drift.fields import printable

_NAME_LENGTH_MAX = 253


def scaler_of(scalers: Iterable[Any], group: str, kind: str, name: str) -> str:
    """Return the name of the first autoscaler, by name, that targets the object; "" when none does."""
    found = sorted(
        name_of
        for scaler in scalers
        if isinstance(scaler, Mapping) and _targets(scaler, group, kind, name) and (name_of := _name(scaler))
    )
    return found[0] if found else ""


def _targets(scaler: Mapping[str, Any], group: str, kind: str, name: str) -> bool:
    metadata, spec = scaler.get("metadata"), scaler.get("spec")
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping) or metadata.get("deletionTimestamp"):
        return False
    target = spec.get("scaleTargetRef")
    if not isinstance(target, Mapping):
        return False
    version = target.get("apiVersion")
    has_group = isinstance(version, str) and version.rpartition("/")[0] == group
    return has_group and (target.get("kind"), target.get("name")) == (kind, name)


def _name(scaler: Mapping[str, Any]) -> str:
    name = scaler["metadata"].get("name")
    return printable(name, _NAME_LENGTH_MAX) if isinstance(name, str) else ""
