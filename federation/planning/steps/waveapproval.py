"""The revisions that sync may deliver to clusters with the object, and the failure of a rollout. Pure.

A federated object whose policies have waves carries their rules in an annotation (`planning/waves/waverules.py`). Then
a cluster keeps its pod template until `features/waves` approves the new one.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.apimachinery.mergepatch import without_nulls
from federation.planning.rendering.memberobject import template_revision
from federation.planning.waves.rolloutpart import is_resource


class _Failure(msgspec.Struct):
    reason: str
    template: str
    """The revision of the pod template."""


_APPROVED = AnnotationRecord(names.APPROVED_REVISIONS, dict[str, str])
_RETURNING = AnnotationRecord(names.RETURNING_REVISIONS, dict[str, str])
_FAILURE = AnnotationRecord(names.ROLLOUT_FAILURE, _Failure)


def approved_revisions(federated: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return the approved template revision by cluster, None for an object without waves.

    A malformed record approves nothing.
    """
    annotations = (federated.get("metadata") or {}).get("annotations") or {}
    if not (annotations.get(names.ROLLOUT) or annotations.get(names.OVERRIDE_ROLLOUT)):
        return None
    return _APPROVED.of(federated) or {}


def to_annotation(approved: Mapping[str, str]) -> str:
    """Return the annotation of the approved revisions."""
    return _APPROVED.text(dict(approved))


def returning_annotation(returning: Mapping[str, str]) -> str | None:
    """Return the annotation of the approved revisions that clusters ran before their present ones, None for none."""
    return _RETURNING.text(dict(returning)) if returning else None


def is_returning(federated: Mapping[str, Any], cluster: str) -> bool:
    """Return whether what may be delivered to a cluster is what it ran before its present template."""
    revision = (_RETURNING.of(federated) or {}).get(cluster)
    return revision is not None and revision == (approved_revisions(federated) or {}).get(cluster)


def to_failure(federated: Mapping[str, Any], reason: str) -> str | None:
    """Return the annotation of a failed rollout, None without a reason. It is about the present pod template only.

    Custom resources have none: only workloads have a condition for it.
    """
    if not reason or is_resource(federated["spec"]["template"]):
        return None
    template = template_revision(federated["spec"]["template"])
    return _FAILURE.text(_Failure(reason, template))


def failure_of(federated: Mapping[str, Any], source: Mapping[str, Any]) -> str:
    """Return why the rollout of the source's pod template failed, "" if it did not.

    A user may have replaced the template since: the record of the earlier one says nothing about it.
    """
    found = _FAILURE.of(federated)
    if found is None:
        return ""
    # The template of a federated object has no nulls; a source may have some.
    template = template_revision(without_nulls(source))
    return found.reason if found.template == template else ""
