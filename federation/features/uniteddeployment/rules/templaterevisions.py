"""The history of a UnitedDeployment's template, as ControllerRevisions. Pure.

Only `spec.template` is versioned: a change of the topology, a patch or the replicas makes no revision. The newest
revision has the highest number. A return to an earlier template gives its revision the highest number again.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api.resources import UNITED_DEPLOYMENTS
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import CONTROLLER_REVISIONS, Object
from federation.features.uniteddeployment.rules.workloadkinds import kind_of

HISTORY_LIMIT = 10
_NAME_LENGTH_MAX = 52
"""Of the UnitedDeployment's name in the name of a revision, which is a label value."""


@dataclass(frozen=True, slots=True)
class RevisionPlan:
    """The current and the updated revision by name, and the writes that they need."""

    current: str
    updated: str
    collisions: int
    created: Object | None = None
    """A revision to create."""
    renumbered: tuple[str, int] | None = None
    """A revision that needs a new number, after a return to an earlier template."""


def plan_revisions(united: Mapping[str, Any], known: Sequence[Mapping[str, Any]]) -> RevisionPlan:
    """Return the plan for the template of `united`; `known` are the revisions that it controls, in any order."""
    status = united.get("status") or {}
    collisions = status.get("collisionCount") or 0
    history = sorted(known, key=_number)
    newest = _number(history[-1]) if history else 0
    data = revision_data(united)
    equal = next((revision for revision in reversed(history) if revision.get("data") == data), None)
    created = renumbered = None
    if equal is None:
        taken = {revision["metadata"]["name"] for revision in history}
        while (name := revision_name(united, data, collisions)) in taken:
            collisions += 1
        created = _to_revision(united, name, data, newest + 1)
    else:
        name = equal["metadata"]["name"]
        if _number(equal) != newest:
            renumbered = (name, newest + 1)
    current = status.get("currentRevision") or ""
    if current not in {revision["metadata"]["name"] for revision in history}:
        current = name
    return RevisionPlan(current, name, collisions, created, renumbered)


def revision_data(united: Mapping[str, Any]) -> Object:
    """Return what a revision stores: a patch that replaces the template."""
    return {"spec": {"template": {**((united.get("spec") or {}).get("template") or {}), "$patch": "replace"}}}


def revision_name(united: Mapping[str, Any], data: Mapping[str, Any], collisions: int) -> str:
    """Return the name of the revision of a template: the same for equal templates and collisions."""
    digest = hashlib.blake2b(orjson.dumps(data, option=orjson.OPT_SORT_KEYS), digest_size=5)
    if collisions:
        digest.update(str(collisions).encode())
    return f"{united['metadata']['name'][:_NAME_LENGTH_MAX]}-{digest.hexdigest()}"


def surplus_revisions(known: Sequence[Mapping[str, Any]], live: set[str], limit: int | None) -> list[str]:
    """Return the names of the oldest revisions beyond the limit; those in `live` stay and do not count."""
    idle = [revision["metadata"]["name"] for revision in sorted(known, key=_number)]
    idle = [name for name in idle if name not in live]
    return idle[: max(0, len(idle) - (HISTORY_LIMIT if limit is None else max(0, limit)))]


def _number(revision: Mapping[str, Any]) -> int:
    return int(revision.get("revision") or 0)


def _to_revision(united: Mapping[str, Any], name: str, data: Object, number: int) -> Object:
    template = (united.get("spec") or {}).get("template") or {}
    kind = kind_of(template)
    labels = ((template.get(kind.template) or {}).get("metadata") or {}).get("labels") if kind else None
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": name,
            "namespace": united["metadata"].get("namespace", ""),
            "labels": dict(labels or {}),
            "ownerReferences": [controller_reference(united, UNITED_DEPLOYMENTS.api_version, UNITED_DEPLOYMENTS.kind)],
        },
        "data": data,
        "revision": number,
    }
