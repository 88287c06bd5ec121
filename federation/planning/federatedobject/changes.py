"""Find updates of sources and parts of federated objects that concern the federate controller. Pure.

The function runs for every event of every source, most of which are status updates, so it compares and builds nothing.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.planning.federatedobject.allocations import written_allocations
from federation.planning.federatedobject.federatedtemplate import FEDERATED_ANNOTATIONS, IGNORED_ANNOTATIONS
from federation.planning.federatedobject.names import OBSERVED_ANNOTATIONS, OBSERVED_LABELS

SOURCE_ANNOTATIONS = FEDERATED_ANNOTATIONS | {OBSERVED_ANNOTATIONS, OBSERVED_LABELS}
"""The annotations of a federated object that its source decides."""
_IRRELEVANT = frozenset(("metadata", "status"))
# Annotations are compared apart.
_METADATA_IRRELEVANT = frozenset(
    ("resourceVersion", "managedFields", "finalizers", "ownerReferences", "generation", "annotations")
)


def is_relevant_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True if an update of a source may change its federated object; status and feedback cannot."""
    before, after = old["metadata"], new["metadata"]
    if after.get("deletionTimestamp") or (_is_held(before) and not _is_held(after)):
        return True
    if ("managedFields" in before or "managedFields" in after) and written_allocations(old) != written_allocations(new):
        return True
    generation = after.get("generation")
    if generation is not None and generation != before.get("generation"):
        return True
    return _differs_in_metadata(before, after) or (generation is None and _differs(old, new, _IRRELEVANT))


def is_edited(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True if more than status and feedback differs, or it is another object.

    Unlike for `is_relevant_change`, a new generation alone is nothing: that of a Deployment counts feedback, too.
    """
    return _differs_in_metadata(old["metadata"], new["metadata"]) or _differs(old, new, _IRRELEVANT)


def _differs_in_metadata(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return _without_feedback(before.get("annotations")) != _without_feedback(after.get("annotations")) or _differs(
        before, after, _METADATA_IRRELEVANT
    )


def _differs(old: Mapping[str, Any], new: Mapping[str, Any], irrelevant: frozenset[str]) -> bool:
    """Return whether a field differs; a null is an absent field."""
    for key, value in new.items():
        if key not in irrelevant and value != old.get(key):
            return True
    if old.keys() <= new.keys():
        return False
    return any(value is not None for key, value in old.items() if key not in new and key not in irrelevant)


def _is_held(metadata: Mapping[str, Any]) -> bool:
    """Return whether our finalizer holds the source; only objects that are or will be placed have it."""
    return names.FEDERATE_FINALIZER in (metadata.get("finalizers") or ())


def _without_feedback(annotations: Mapping[str, str] | None) -> Mapping[str, str]:
    present = annotations or {}
    if present.keys().isdisjoint(IGNORED_ANNOTATIONS):
        return present
    return {key: value for key, value in present.items() if key not in IGNORED_ANNOTATIONS}
