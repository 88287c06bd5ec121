"""StatefulSets that were released with their pods, and that a new one of the name takes back. Pure.

`kubectl delete statefulset --cascade=orphan` and a new StatefulSet are how fields are changed that cannot change, above
all `volumeClaimTemplates`: the pods go on running, and the new one adopts them. Members keep the StatefulSet itself, so
its release marks it. One with our mark is taken back without the annotations of an adoption, and if it differs in such
a field it is deleted without its pods, and created again. One that was adopted from the member is the member's.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.resources import STATEFUL_SETS, Resource
from federation.delivery.rules.names import ORPHANED
from federation.planning.drift.fields import is_written_by_us
from federation.planning.rendering.drift import is_subset

_MUTABLE = frozenset(
    {
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    }
)


def is_marked_at_release(resource: Resource) -> bool:
    """Return whether objects of the kind get the mark when they are released."""
    return resource == STATEFUL_SETS


def is_orphan(resource: Resource, live: Mapping[str, Any]) -> bool:
    """Return True if the federation delivered and released the member object, and it has no manager now."""
    metadata = live["metadata"]
    annotations = metadata.get("annotations") or {}
    return (
        is_marked_at_release(resource)
        and ORPHANED in annotations
        and annotations.get(names.ADOPTED) != "true"
        and names.MANAGED_LABEL not in (metadata.get("labels") or {})
        and is_written_by_us(live, ("metadata", "annotations", ORPHANED))
    )


def needs_replacement(desired: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return whether the StatefulSet differs in a field that cannot change."""
    wanted, held = _fixed(desired), _fixed(live)
    has_other_claims = len(wanted.get("volumeClaimTemplates") or ()) != len(held.get("volumeClaimTemplates") or ())
    return has_other_claims or not is_subset(wanted, held)


def _fixed(obj: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in (obj.get("spec") or {}).items() if key not in _MUTABLE}
