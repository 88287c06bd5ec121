"""JSON objects in untrusted text: annotations, responses of other servers. Pure."""

from typing import Any

import orjson


def parse_object(text: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object, None for any other text."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
