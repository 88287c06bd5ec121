"""Whether a change of a member object can change what sync does with it. Pure.

Two places see such changes: the events of members, and the answer to a write, which may come after events of later
writers. Most changes are statuses that the member's controllers write; sync needs none of them but the end of an object
that finishes. Steps of divided workloads, which follow from statuses, are decided in `delivery/clustersteps.py`.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Resource
from federation.planning.federatedobject.finished import is_finished
from federation.planning.rendering.drift import may_have_drifted


def has_ended(resource: Resource, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Return whether the object has finished with this change."""
    kind = resource.group, resource.kind
    return is_finished(kind, new) and not is_finished(kind, old)


def matters(resource: Resource, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Return whether the object may lack what was applied to it, or has finished, since its state `old`."""
    return old is None or may_have_drifted(old, new) or has_ended(resource, old, new)
