"""Base64 as Go's decoder reads it and its encoder writes it: line breaks are ignored, the unused last bits are zero.

Python's strict decoder refuses line breaks, which long texts in manifests have. Pure.
"""

import base64
import binascii
from typing import Any, Final

_BREAKS: Final = str.maketrans("", "", "\r\n")


def decode_base64(text: str) -> bytes:
    """Return the bytes of a text; ValueError when it is malformed."""
    try:
        return base64.b64decode(text.translate(_BREAKS), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def to_canonical_base64(value: Any) -> Any:
    """Return the text that Go writes for a base64 text; a malformed one or another type as it is."""
    if value.__class__ is not str or not (value.endswith("=") or "\n" in value or "\r" in value):
        return value
    try:
        return base64.b64encode(decode_base64(value)).decode()
    except ValueError:
        return value
