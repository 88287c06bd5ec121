"""Objects that are suspended by a field of their own: they have no pods while they are. Pure."""

from collections.abc import Mapping
from typing import Any

_CRON_JOB = "CronJob"
"""A suspended CronJob only starts no further Jobs."""


def is_suspended(obj: Mapping[str, Any]) -> bool:
    """Return whether a Job, or an object of another kind with Kubernetes' field for that, is suspended."""
    spec = obj.get("spec")
    if obj.get("kind") == _CRON_JOB or not isinstance(spec, Mapping):
        return False
    policy = spec.get("runPolicy")
    return spec.get("suspend") is True or (isinstance(policy, Mapping) and policy.get("suspend") is True)


def without_suspension(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return a suspended object as one that is not."""
    spec = dict(obj["spec"])
    if "suspend" in spec:
        spec["suspend"] = False
    if isinstance(policy := spec.get("runPolicy"), Mapping) and "suspend" in policy:
        spec["runPolicy"] = {**policy, "suspend": False}
    return {**obj, "spec": spec}
