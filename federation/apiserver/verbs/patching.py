"""PATCH bodies: parsed once, applied again after each conflict.

`Patch` knows the four content types. The algorithms are in `semantics/patch` (JSON, merge, strategic merge) and
`semantics/fieldownership/apply.py` (server-side apply). `apiserver/http/decoding.py` has turned YAML into JSON before.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import orjson

from federation.apimachinery.errors import BadRequest, Invalid, UnsupportedMediaType, invalid
from federation.apimachinery.fielderrors import forbidden, required
from federation.apimachinery.jsonpatch import apply_json_patch
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.fieldownership import apply as server_side_apply
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.patch.strategic import strategic_merge_patch
from federation.apiserver.semantics.schema.goform import fill_maps
from federation.apiserver.verbs.requestoptions import WriteOptions

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
    text: bytes
    """The JSON of `body`."""
    pins_revision: bool
    """Whether the patch names a resourceVersion, so that a concurrent write is a Conflict instead of a retry."""

    @property
    def is_apply(self) -> bool:
        """Whether the patch is a server-side apply, which may create the object."""
        return self.type == APPLY

    def applied_to(
        self, info: KindInfo, live: Object | None, options: WriteOptions, *, now: datetime, subresource: str
    ) -> Object:
        """Return the patched object; `live` may be changed in place. It is None only for an apply that creates."""
        if self.type == APPLY:
            return server_side_apply.apply(
                info.schema,
                live,
                self.as_new(),
                manager=options.field_manager,
                force=options.force,
                api_version=info.resource.api_version,
                subresource=subresource,
                now=now,
                ignored=_STATUS if not subresource and "status" in info.subresources else frozenset(),
            )
        if self.type == JSON:
            patched = apply_json_patch(live, self.body)
        elif self.type == MERGE:
            patched = apply_merge_patch(live, self.body)
        else:
            assert live is not None
            patched = strategic_merge_patch(info.schema, live, self.body)
        if not isinstance(patched, dict):
            raise BadRequest("the patch does not leave an object")
        return patched

    def as_new(self) -> Object:
        """Return a fresh copy of the applied configuration."""
        obj: Object = orjson.loads(self.text)
        return obj


SCALE: Final = ("autoscaling/v1", "Scale")
"""The target of a patch of the subresource `scale`."""


def parse_patch(
    info: KindInfo, patch_type: str, body: bytes, options: WriteOptions, *, subresource: str = "", parsed: Any = None
) -> Patch:
    """Parse a PATCH body, unless `parsed` is its value; UnsupportedMediaType, BadRequest, Invalid."""
    media_type = patch_type.partition(";")[0].strip().lower()
    accepted = (JSON, MERGE, APPLY) if info.is_custom else (JSON, MERGE, STRATEGIC, APPLY)
    if media_type not in accepted:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
        )
    if media_type == APPLY:
        type_ = SCALE if subresource == "scale" else (info.resource.api_version, info.resource.kind)
        patch = _parse_apply(type_, body, options, parsed)
        if b"null" in body and not info.is_custom and subresource != "scale":
            fill_maps(info.schema, patch.body)
            patch = replace(patch, text=orjson.dumps(patch.body))
        return patch
    if options.force:
        raise _invalid_options(forbidden("force", "may not be specified for non-apply patch"))
    parsed = _parse_json(body) if parsed is None else parsed
    if not isinstance(parsed, list if media_type == JSON else dict):
        raise BadRequest(f"error decoding patch: expected {'a list' if media_type == JSON else 'an object'}")
    return Patch(media_type, parsed, body, _pins_revision(media_type, parsed))


def _parse_apply(type_: tuple[str, str], body: bytes, options: WriteOptions, parsed: Any) -> Patch:
    if not options.field_manager:
        raise _invalid_options(required("fieldManager", "is required for apply patch"))
    parsed = _parse_json(body) if parsed is None else parsed
    if not isinstance(parsed, dict):
        raise BadRequest("error decoding YAML: the applied configuration must be an object")
    api_version, kind = parsed.get("apiVersion") or "", parsed.get("kind") or ""
    if (api_version, kind) != type_:
        group, _, version = str(api_version).rpartition("/")
        raise BadRequest(f"invalid object type: {group}/{version}, Kind={kind}")
    metadata = parsed.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    return Patch(APPLY, parsed, body, isinstance(metadata, dict) and bool(metadata.get("resourceVersion")))


def _invalid_options(problem: dict[str, str]) -> Invalid:
    return invalid("PatchOptions", "meta.k8s.io", "", [problem])


def _parse_json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"error decoding patch: {error}") from error


def _pins_revision(media_type: str, parsed: Any) -> bool:
    if media_type == JSON:
        return any("metadata/resourceVersion" in str(step.get("path", "")) for step in parsed if isinstance(step, dict))
    metadata = parsed.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("resourceVersion"))
