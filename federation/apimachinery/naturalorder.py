"""The order in which people sort names: member-2 before member-10. Pure."""

import re

_DIGITS = re.compile(r"(\d{1,18})")
NaturalKey = tuple[tuple[int, str], ...]


def natural_key(name: str) -> NaturalKey:
    """Return a sort key that compares runs of digits as numbers, and everything else as text.

    Names that differ only in leading zeros are ordered by their text.
    """
    parts = _DIGITS.split(name)
    return (*((int(part), "") if at % 2 else (-1, part) for at, part in enumerate(parts)), (-1, name))
