"""The object in a request's body. Bodies that take long to decode are decoded in a thread, off the event loop.

`decoding.py` decodes bytes; `asgi.py` receives and limits them.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson

from federation.apimachinery.errors import BadRequest
from federation.apimachinery.usedtime import in_thread, rest
from federation.apiserver.http import decoding
from federation.apiserver.http.asgi import Request
from federation.apiserver.semantics.schema.model import ANYTHING, Schema

_decoders: Final = ThreadPoolExecutor(2, "decoder")
"""Bodies that take long to decode keep no other work waiting. More threads would decode no faster,
because they share the GIL."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Limits of one request's body."""

    bytes_max: int
    values_max: int
    """Keys and list items of an object, besides its managed fields."""


async def read_object(
    request: Request, limits: BodyLimits, schema: Schema = ANYTHING
) -> tuple[dict[str, Any], list[str]]:
    """Return the object in a request's body and its decoding problems; raise as `decode_object` does."""
    return await to_object(await request.body(limits.bytes_max), request.header(b"content-type"), limits, schema)


async def to_object(
    body: bytes, content_type: str, limits: BodyLimits, schema: Schema = ANYTHING
) -> tuple[dict[str, Any], list[str]]:
    """Return the object in a body and its decoding problems; raise as `decode_object` does."""
    decode = partial(decoding.decode_object, body, content_type, values_max=limits.values_max, schema=schema)
    await rest()
    if decoding.is_slow(body, content_type):
        return await in_thread(decode, _decoders)
    return decode()


async def read_patch(request: Request, media_type: str, limits: BodyLimits) -> tuple[bytes, Any, list[str]]:
    """Return the patch in a request's body as JSON text and as its value, and its decoding problems.

    An apply may be YAML. The value of text that is not JSON is None. Raises as `check_patch_size` does, and BadRequest
    for an apply that is not YAML.
    """
    text = await request.body(limits.bytes_max)
    await rest()
    decoding.check_values(text, 2 * limits.values_max)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        if "yaml" not in media_type:
            return text, None, []
        is_slow = decoding.is_slow(text, media_type)
        decode = decoding.decode_yaml
        value, duplicates = await in_thread(partial(decode, text), _decoders) if is_slow else decode(text)
        return orjson.dumps(value), value, decoding.yaml_problems(duplicates)
    decoding.check_patch_size(text, value, limits.values_max)
    return text, value, decoding.find_patch_problems(text, value, media_type)


def mapping_field(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object in a review's spec (or the spec itself), {} when it is missing; BadRequest for other types."""
    value = spec.get(name)
    if not isinstance(value, (dict, type(None))):
        raise BadRequest(f"{'' if name == 'spec' else 'spec.'}{name} must be an object")
    return value or {}


def string_list_field(spec: Mapping[str, Any], name: str) -> list[str]:
    """Return a list of strings in a review's spec, [] when it is missing; BadRequest for other types."""
    values = spec.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise BadRequest(f"spec.{name} must be a list of strings")
    return values
