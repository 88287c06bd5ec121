"""Admission records who wrote the wishes that the control plane carries out (`planning/authors.py`).

It stands before another plugin for the same resources, or alone. A client cannot write the record: what it sends is
replaced.
"""

from collections.abc import Collection

from federation.api import names
from federation.apimachinery.resources import Object
from federation.apiserver.admission.plugins import AdmissionPlugin
from federation.apiserver.admission.requests import CREATE, UPDATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import Decide
from federation.planning.authors import record


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
        metadata = obj["metadata"]
        annotations = metadata.get("annotations")
        if not isinstance(annotations, dict | None):
            return obj  # it is not valid, and refused as such
        others = {key: value for key, value in (annotations or {}).items() if key != names.AUTHORS}
        written = record(obj, request.old, request.user)
        kept = others if written is None else {**others, names.AUTHORS: written}
        if kept or annotations:
            metadata["annotations"] = kept
        return obj

    async def validate(self, request: AdmissionRequest, access: Decide) -> None:
        """Let the other plugin decide."""
        if self._inner is not None:
            await self._inner.validate(request, access)
