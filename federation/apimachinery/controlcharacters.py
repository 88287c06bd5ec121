r"""Escape characters that control a terminal or reorder its text: \u001b, \u202e and their like. Pure.

Texts of members, users and errors reach terminals and logs, where such characters move the cursor, clear lines, set
titles, or show another text than the one that is there. JSON writes them in the same way.
"""

import re
from typing import Final

_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]"
)
"""Controls besides tab and line feed, marks and overrides of text direction, line separators, and half characters."""

_DIRECTION: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks and overrides of text direction."""


def escape(text: str) -> str:
    """Return the text with characters that could control a terminal shown as their codes."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_code, text)


def escape_direction(text: str) -> str:
    """Return the text with characters that reorder what readers see shown as their codes, for HTML pages."""
    return text if text.isascii() else _DIRECTION.sub(_code, text)


def _code(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
