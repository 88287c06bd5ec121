"""Admission records who wrote the wishes that the control plane carries out (`planning/authors.py`).

`AuthorAdmission` stands before another plugin for the same resources, or alone. `record_choice` is for all other kinds:
who names an override policy in a label wishes for its overrides. A client cannot write the record: what it sends is
replaced.
"""

from collections.abc import Collection, Container

from federation.admission.federatedobjects import forbidden
from federation.api import names
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.admission.plugins import AdmissionPlugin, DeletionProtection
from federation.apiserver.admission.requests import CREATE, UPDATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.apiserver.verbs.requestoptions import Requester
from federation.planning.authors import AUTHORS_MAX, authors_of, record

_CHOICES = frozenset((names.OVERRIDE_POLICY_LABEL, names.CLUSTER_OVERRIDE_POLICY_LABEL))


class AuthorAdmission:
    """An `AdmissionPlugin` around another one. It lives as long as the API server and keeps no state."""

    def __init__(self, inner: AdmissionPlugin | None = None, resources: Collection[str] = ()) -> None:
        """`resources` are those without another plugin."""
        self._inner = inner
        self.resources = frozenset(resources) | (inner.resources if inner is not None else frozenset())

    def mutate(self, request: AdmissionRequest) -> Object:
        """Return the object of the other plugin, with the record."""
        obj = self._inner.mutate(request) if self._inner is not None else request.obj or {}
        if request.subresource or request.operation not in (CREATE, UPDATE):
            return obj
        _set(obj, record(obj, request.old, request.user))
        if len(authors_of(obj)) > AUTHORS_MAX:
            text = f"its parts were written by more than {AUTHORS_MAX} users; delete it and create it again"
            raise forbidden(request, text, field="spec")
        return obj

    def deletion_problem(self, obj: Object) -> str:
        """Let the other plugin decide."""
        return self._inner.deletion_problem(obj) if isinstance(self._inner, DeletionProtection) else ""

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Let the other plugin decide."""
        if self._inner is not None:
            await self._inner.validate(request, access)


def record_choice(
    recorded: Container[str], resource: Resource, obj: Object, old: Object | None, requester: Requester
) -> None:
    """Record the authors of an object that names an override policy in a label; others have no record.

    `recorded` are the kinds (`Resource.group_resource`) whose record an `AuthorAdmission` keeps.
    """
    metadata = obj["metadata"]
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    is_choice = isinstance(labels, dict) and not _CHOICES.isdisjoint(labels)
    if not is_choice and not (isinstance(annotations, dict) and names.AUTHORS in annotations):
        return
    if resource.group_resource not in recorded:
        before = None if old is None else {**old, "spec": _wish(old)}
        _set(obj, record({"spec": _wish(obj)}, before, requester()) if is_choice else None)


def _wish(obj: Object) -> Object:
    labels = obj["metadata"].get("labels")
    chosen = {key: labels[key] for key in _CHOICES & labels.keys()} if isinstance(labels, dict) else {}
    content = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return {**content, "metadata.labels": chosen}


def _set(obj: Object, written: str | None) -> None:
    metadata = obj["metadata"]
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict | None):
        return  # it is not valid, and refused as such
    others = {key: value for key, value in (annotations or {}).items() if key != names.AUTHORS}
    kept = others if written is None else {**others, names.AUTHORS: written}
    if kept or annotations:
        metadata["annotations"] = kept
