"""The annotation `scheduling`, which tells users the last decision: KubeAdmiral's scheduling feedback. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord


class _Feedback(msgspec.Struct, rename="camel", omit_defaults=True):
    source_generation: int | None = None
    fed_generation: int | None = None
    placement: dict[str, int | None] | None = None


_FEEDBACK = AnnotationRecord(names.SCHEDULING, _Feedback, order="deterministic")


def feedback_text(federated: Mapping[str, Any], placements: Mapping[str, int | None]) -> str:
    """Return the annotation's value for a decision about the federated object."""
    source = federated["spec"]["template"].get("metadata") or {}
    return _FEEDBACK.text(
        _Feedback(source.get("generation"), federated["metadata"].get("generation"), dict(placements))
    )


def last_placement(federated: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the replicas of the last decision by cluster, None for those of the template; {} without a decision."""
    found = _FEEDBACK.of(federated)
    return (found.placement or {}) if found is not None else {}
