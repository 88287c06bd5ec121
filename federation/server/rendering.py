"""What the registry's bytes become in an answer: the bytes themselves, a Table, or metadata only. Pure.

The plain form is never parsed: an object is sent as stored, a list is a join of bytes (D2). The other forms parse,
which is fine: people read tables, and metadata informers are few.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from federation.base.errors import BadRequest
from federation.registry import encoding
from federation.registry.kinds import KindInfo
from federation.registry.options import ListResult
from federation.registry.printing import IncludeObject, to_table
from federation.server.asgi import JSON_TYPE, is_true, serialize
from federation.server.negotiation import Answer, Shape


def render_object(
    info: KindInfo, value: bytes, answer: Answer, query: Mapping[str, str], now: datetime
) -> tuple[bytes, bytes]:
    """Return body and content type of one object."""
    is_pretty = "pretty" in query and is_true(query["pretty"])
    if answer.shape is Shape.OBJECT and not answer.is_yaml and not is_pretty:
        return value, JSON_TYPE
    if answer.shape is Shape.TABLE:
        version = encoding.position(value).resource_version.decode() if value.startswith(info.head) else ""
        shown: Any = to_table(info, [value], now=now, include_object=include_object(query), resource_version=version)
        shown["apiVersion"] = f"meta.k8s.io/{answer.version}"
    elif answer.shape is Shape.METADATA:
        shown = to_partial(value, answer.version)
    else:
        shown = orjson.loads(value)
    return serialize(shown, answer.content_type, is_pretty=is_pretty), answer.content_type


def render_list(
    info: KindInfo, result: ListResult, answer: Answer, query: Mapping[str, str], now: datetime
) -> tuple[bytes, bytes]:
    """Return body and content type of a page."""
    is_pretty = "pretty" in query and is_true(query["pretty"])
    if answer.shape is Shape.OBJECT and not answer.is_yaml and not is_pretty:
        return _join(info, result), JSON_TYPE
    metadata = _list_metadata(result)
    if answer.shape is Shape.TABLE:
        shown = to_table(
            info,
            result.items,
            now=now,
            include_object=include_object(query),
            resource_version=str(result.resource_version),
        )
        shown["metadata"] = metadata
        shown["apiVersion"] = f"meta.k8s.io/{answer.version}"
    elif answer.shape is Shape.METADATA:
        shown = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{answer.version}",
            "metadata": metadata,
            "items": [to_partial(item, answer.version) for item in result.items],
        }
    else:
        shown = orjson.loads(_join(info, result))
    return serialize(shown, answer.content_type, is_pretty=is_pretty), answer.content_type


def to_partial(value: bytes, version: str) -> dict[str, Any]:
    """Return an object's PartialObjectMetadata."""
    metadata = orjson.loads(value).get("metadata") or {}
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


def include_object(query: Mapping[str, str]) -> IncludeObject:
    """Return what a table's rows carry of their object; BadRequest for an unknown word."""
    match query.get("includeObject") or "Metadata":
        case "Metadata":
            return "Metadata"
        case "None":
            return "None"
        case "Object":
            return "Object"
        case other:
            raise BadRequest(f"unrecognized includeObject value: {other!r}: supported are None, Metadata, Object")


def is_status(value: bytes) -> bool:
    """Return whether the bytes are a `Status` (an answer to DELETE), which has no other forms."""
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
