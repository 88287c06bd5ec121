"""Replicas that a workload may not have in a cluster because it gave them up, as an annotation of its federated object.

Preemption (`features/preemption`) writes the annotation; the scheduler caps the cluster by it and explains the cap.
This record is all that they share. Pure.
"""

from collections.abc import Mapping

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord, Count


class Yield(msgspec.Struct, frozen=True):
    """Replicas of a workload that give way in a cluster: it keeps at most `keeps` there, and gave `count` to `to`."""

    keeps: Count
    count: Count
    to: str


Yields = Mapping[str, Yield]
"""The given replicas of a workload, by cluster."""
_YIELDS = AnnotationRecord(names.GIVES_WAY, dict[str, Yield])


def named_in(namespace: str, title: str) -> str:
    """Return the title `Kind namespace/name` of a workload for readers of a namespace: without a name if it is another.

    Who reads a workload may not read what it gave way to, and a project has members that know no other namespaces.
    """
    kind, _, name = title.partition(" ")
    return title if name.partition("/")[0] == namespace else f"a {kind} of another namespace"


def yields_from(text: str | None) -> dict[str, Yield]:
    """Return the record of an annotation by cluster, {} without one."""
    return _YIELDS.read(text) or {}


def yields_to_text(yields: Yields) -> str | None:
    """Return the annotation of a record; None removes it."""
    return _YIELDS.text(dict(yields)) if yields else None
