"""From a request to the object in its body, without keeping the event loop from others: slow ones go to a thread.

What bytes mean is in `decoding.py`; how they arrive, and how many may, in `asgi.py`.
"""

import asyncio
from typing import Any

import orjson

from federation.server import decoding
from federation.server.asgi import Request


async def read_object(request: Request, bytes_max: int) -> tuple[dict[str, Any], list[str]]:
    """Return the object in a request's body and the names of duplicate fields; errors as `decode_object`'s."""
    return await to_object(await request.body(bytes_max), request.header(b"content-type"))


async def to_object(body: bytes, content_type: str) -> tuple[dict[str, Any], list[str]]:
    """Return the object in a body that was read, and the names of duplicate fields."""
    if decoding.is_slow(body, content_type):
        return await asyncio.to_thread(decoding.decode_object, body, content_type)
    return decoding.decode_object(body, content_type)


async def to_json(patch: bytes, content_type: str) -> bytes:
    """Return a YAML patch as JSON; BadRequest when it is not YAML."""
    is_slow = decoding.is_slow(patch, content_type)
    value, _ = await asyncio.to_thread(decoding.decode_yaml, patch) if is_slow else decoding.decode_yaml(patch)
    return orjson.dumps(value)
