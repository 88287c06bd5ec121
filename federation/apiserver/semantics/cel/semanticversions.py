"""Semantic versions of CEL's function `semver`, in semver.org's grammar and order. Pure.

A version is parsed to its canonical text without build metadata, which does not count in comparisons.
"""

import re
from typing import Final

_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_NUMBER_MAX: Final = 2**64

Order = tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]


def parse(text: str) -> str:
    """Return the version without its build metadata; ValueError."""
    found = _VERSION.fullmatch(text)
    if found is None or any(int(number) >= _NUMBER_MAX for number in found.group(1, 2, 3)):
        raise ValueError(f"invalid semantic version: {text}")
    core = ".".join(found.group(1, 2, 3))
    return f"{core}-{found[4]}" if found[4] else core


def normalize(text: str) -> str:
    """Return the text with a leading `v` and leading zeros removed, and absent numbers added; ValueError."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdecimal() else f"0{stripped}"
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise ValueError(f"a short version cannot have a pre-release or build metadata: {text}")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def order(version: str) -> Order:
    """Return a parsed version's place: a pre-release is older than its release, and its numbers than its words."""
    core, _, pre_release = version.partition("-")
    major, minor, patch = map(int, core.split("."))
    identifiers = pre_release.split(".") if pre_release else []
    places = tuple((not each.isdecimal(), int(each) if each.isdecimal() else 0, each) for each in identifiers)
    return major, minor, patch, not pre_release, places
