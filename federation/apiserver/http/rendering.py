"""Response bodies from the registry's bytes: the bytes as stored, a Table, or metadata only. Pure.

The plain form is never parsed: an object is sent as stored, and a list is a join of bytes. The other forms are parsed;
tables are read by people, and metadata informers are few.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from federation.apimachinery.errors import BadRequest, NotAcceptable
from federation.apiserver.http.asgi import JSON_TYPE, is_asked, serialize
from federation.apiserver.http.negotiation import Representation, Shape
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.printers.printing import IncludeObject, to_table
from federation.apiserver.verbs.requestoptions import ListResult


def render_object(
    info: KindInfo, value: bytes, representation: Representation, query: Mapping[str, str], now: datetime
) -> tuple[bytes, bytes]:
    """Return the body and content type of one object."""
    is_pretty = is_asked(query, "pretty")
    if representation.shape is Shape.OBJECT and not representation.is_yaml and not is_pretty:
        return value, JSON_TYPE
    if representation.shape is Shape.TABLE:
        version = encoding.read_revision_and_uid(value).resource_version.decode() if value.startswith(info.head) else ""
        shown: Any = to_table(info, [value], now=now, include_object=include_object(query), resource_version=version)
        shown["apiVersion"] = f"meta.k8s.io/{representation.version}"
    elif representation.shape is Shape.METADATA:
        shown = to_partial(value, representation.version)
    else:
        shown = orjson.loads(value)
    return serialize(shown, representation.content_type, is_pretty=is_pretty), representation.content_type


def render_list(
    info: KindInfo, result: ListResult, representation: Representation, query: Mapping[str, str], now: datetime
) -> tuple[bytes, bytes]:
    """Return the body and content type of a page of a list."""
    is_pretty = is_asked(query, "pretty")
    if representation.shape is Shape.OBJECT and not representation.is_yaml and not is_pretty:
        return _join(info, result), JSON_TYPE
    metadata = _list_metadata(result)
    if representation.shape is Shape.TABLE:
        shown = to_table(
            info,
            result.items,
            now=now,
            include_object=include_object(query),
            resource_version=str(result.resource_version),
        )
        shown["metadata"] = metadata
        shown["apiVersion"] = f"meta.k8s.io/{representation.version}"
    elif representation.shape is Shape.METADATA:
        shown = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{representation.version}",
            "metadata": metadata,
            "items": [to_partial(item, representation.version) for item in result.items],
        }
    else:
        shown = orjson.loads(_join(info, result))
    return serialize(shown, representation.content_type, is_pretty=is_pretty), representation.content_type


def check_metadata_form(info: KindInfo, representation: Representation, *, is_list: bool) -> None:
    """Raise NotAcceptable when a client asks for the metadata of a list, and gets an object, or the other way round."""
    if representation.is_list and not is_list:
        kind = info.resource.kind
        raise NotAcceptable(f"you requested PartialObjectMetadataList, but the requested object is not a list ({kind})")
    if is_list and not representation.is_list:
        kind = info.list_kind
        raise NotAcceptable(f"you requested PartialObjectMetadata, but the requested object is a list ({kind})")


def to_partial(value: bytes, version: str) -> dict[str, Any]:
    """Return an object's PartialObjectMetadata."""
    metadata = orjson.loads(value).get("metadata") or {}
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


def include_object(query: Mapping[str, str]) -> IncludeObject:
    """Return how much of its object a table's row carries; BadRequest for an unknown value."""
    match query.get("includeObject") or "Metadata":
        case "Metadata":
            return "Metadata"
        case "None":
            return "None"
        case "Object":
            return "Object"
        case other:
            raise BadRequest(
                f'Unable to convert to Table as requested: includeObject: Invalid value: "{other}": must be'
                " 'Metadata', 'Object', 'None', or empty"
            )


def is_status(value: bytes) -> bool:
    """Return whether the bytes are a `Status` (a response to DELETE), which has no other forms."""
    return value.startswith((b'{"kind":"Status"', b'{"apiVersion":"v1","kind":"Status"'))


def _join(info: KindInfo, result: ListResult) -> bytes:
    parts: Sequence[bytes] = (
        b'{"kind":"',
        info.list_kind.encode(),
        b'","apiVersion":"',
        info.resource.api_version.encode(),
        b'","metadata":',
        orjson.dumps(_list_metadata(result)),
        b',"items":[',
        b",".join(result.items),
        b"]}\n",
    )
    return b"".join(parts)


def _list_metadata(result: ListResult) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(result.resource_version)}
    if result.continue_token:
        metadata["continue"] = result.continue_token
        if result.remaining:
            metadata["remainingItemCount"] = result.remaining
    return metadata
