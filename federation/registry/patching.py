"""PATCH bodies: read once, then applied to as many live states as it takes.

`Patch` knows the four content types; the algorithms are in `patch.py` (JSON, merge, strategic merge) and `apply.py`
(server-side apply). An apply in YAML was made JSON before, where its size is bounded (`server/decoding.py`).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from federation.api.resources import Object
from federation.base.errors import BadRequest, UnsupportedMediaType, invalid
from federation.base.errors import cause as error_cause
from federation.registry import apply as server_side_apply
from federation.registry.kinds import KindInfo
from federation.registry.options import WriteOptions
from federation.registry.patch import json_patch, merge_patch, strategic_merge_patch

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_STATUS = frozenset({"status"})


@dataclass(frozen=True, slots=True)
class Patch:
    """A parsed patch of one of the four types."""

    type: str
    body: Any
    pins_revision: bool
    """Whether the patch names a resourceVersion, so that being overtaken is the caller's Conflict."""

    @property
    def is_apply(self) -> bool:
        """Whether the patch is a server-side apply, which may create."""
        return self.type == APPLY

    def applied_to(
        self, info: KindInfo, live: Object | None, options: WriteOptions, *, now: datetime, subresource: str
    ) -> Object:
        """Return what the patch makes of `live` (which is given up); None stands for absent and only apply knows it."""
        if self.type == APPLY:
            return server_side_apply.apply(
                info.schema,
                live,
                self.as_new(info),
                manager=options.field_manager,
                force=options.force,
                api_version=info.resource.api_version,
                subresource=subresource,
                now=now,
                ignored=_STATUS if not subresource and "status" in info.subresources else frozenset(),
            )
        if self.type == JSON:
            patched = json_patch(live, self.body)
        elif self.type == MERGE:
            patched = merge_patch(live, self.body)
        else:
            assert live is not None
            patched = strategic_merge_patch(info.schema, live, self.body)
        if not isinstance(patched, dict):
            raise BadRequest("the patch does not leave an object")
        return patched

    def as_new(self, info: KindInfo) -> Object:
        """Return a fresh copy of an apply's object."""
        obj: Object = orjson.loads(orjson.dumps(self.body))
        obj.setdefault("apiVersion", info.resource.api_version)
        return obj


def parse_patch(info: KindInfo, patch_type: str, body: bytes, options: WriteOptions) -> Patch:
    """Read a PATCH body; UnsupportedMediaType, BadRequest."""
    media_type = patch_type.partition(";")[0].strip().lower()
    accepted = (JSON, MERGE, APPLY) if info.is_custom else (JSON, MERGE, STRATEGIC, APPLY)
    if media_type not in accepted:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
        )
    if media_type == APPLY:
        return _parse_apply(body, options)
    if options.force:
        raise invalid(
            "PatchOptions",
            "meta.k8s.io",
            "",
            [error_cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force")],
        )
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"error decoding patch: {error}") from error
    if not isinstance(parsed, list if media_type == JSON else dict):
        raise BadRequest(f"error decoding patch: expected {'a list' if media_type == JSON else 'an object'}")
    return Patch(media_type, parsed, _pins_revision(media_type, parsed))


def _parse_apply(body: bytes, options: WriteOptions) -> Patch:
    if not options.field_manager:
        raise invalid(
            "PatchOptions",
            "meta.k8s.io",
            "",
            [error_cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")],
        )
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"error decoding patch: {error}") from error
    if not isinstance(parsed, dict):
        raise BadRequest("error decoding YAML: the applied configuration must be an object")
    metadata = parsed.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    return Patch(APPLY, parsed, isinstance(metadata, dict) and bool(metadata.get("resourceVersion")))


def _pins_revision(media_type: str, parsed: Any) -> bool:
    if media_type == JSON:
        return any("metadata/resourceVersion" in str(step.get("path", "")) for step in parsed if isinstance(step, dict))
    metadata = parsed.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("resourceVersion"))
