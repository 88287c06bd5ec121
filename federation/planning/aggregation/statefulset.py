"""The aggregated status of a StatefulSet: the status of a single member object, or the sums of several.

A StatefulSet usually runs in one cluster, then its status is copied (with the source's own observedGeneration). With
several copies KubeAdmiral publishes nothing; we publish the sums, and the revisions only where all members agree.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, observed_generation, status_of, total

_REQUIRED = ("replicas", "availableReplicas")
_OPTIONAL = ("readyReplicas", "currentReplicas", "updatedReplicas")
_AGREED = ("currentRevision", "updateRevision")
_OF_MEMBER = ("observedGeneration", "collisionCount")
"""Fields of the member's controller. The second one may not fall, but another member has its own."""


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the StatefulSet's status, None without a member object."""
    if context.is_unknown(members):
        return None
    if len(members) == 1:
        status = dict(status_of(next(iter(members.values()))))
    else:
        status = {name: total(members, name) for name in _REQUIRED}
        status |= {name: amount for name in _OPTIONAL if (amount := total(members, name))}
        for name in _AGREED:
            found = {status_of(member).get(name) for member in members.values()}
            if len(found) == 1 and (value := found.pop()):
                status[name] = value
    for name in _OF_MEMBER:
        status.pop(name, None)
    if (generation := observed_generation(source, context)) is not None:
        status["observedGeneration"] = generation
    return status or None
