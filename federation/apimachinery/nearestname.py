"""The known name that is most similar to a mistaken one. Pure."""

import difflib
from collections.abc import Collection

_ALIKE = 0.5
"""How similar names have to be, from 0 to 1."""


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return `; did you mean NAME?` with the most similar of other known names, "" if none is similar."""
    found = difflib.get_close_matches(name, [each for each in known if each != name], 1, _ALIKE)
    return f"; did you mean {found[0]}?" if found else ""
