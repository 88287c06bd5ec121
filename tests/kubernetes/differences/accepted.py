"""The accepted differences of `accepted.toml`: a pattern, the most requests that it may concern, and a reason.

The list shrinks: an entry that no difference needs any more, or that needs fewer requests, must be removed or lowered.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("accepted.toml")
SLACK: Final = 1.5
"""How many times the requests that differ an entry may admit; other seeds and other versions of manifests vary."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """One entry."""

    pattern: re.Pattern[str]
    requests_max: int
    reason: str
    areas: frozenset[str] = frozenset()
    """The areas it is for; all of them if empty."""

    def admits(self, area: str, line: str) -> bool:
        """Return whether the entry explains a difference."""
        return (not self.areas or area in self.areas) and self.pattern.search(line) is not None


def read(text: str) -> list[Accepted]:
    """Return the entries of the file."""
    return [
        Accepted(re.compile(each["pattern"], re.DOTALL), each["max"], each["reason"], frozenset(each.get("areas", ())))
        for each in tomllib.loads(text)["accepted"]
    ]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with the differences, or with the list."""

    unexpected: dict[str, str]
    """The first origin of each difference that no entry admits."""
    counts: Counter[Accepted]

    def problems(self, entries: Iterable[Accepted]) -> list[str]:
        """Return one line for each unexpected difference, and for each entry that admits too few or too much."""
        found = [f"unexpected: {line}  [{origin}]" for line, origin in self.unexpected.items()]
        for entry in entries:
            count, name = self.counts[entry], entry.pattern.pattern
            if count > entry.requests_max:
                found.append(f"{count} requests differ by `{name}`, accepted are {entry.requests_max}")
            elif count == 0:
                found.append(f"nothing differs by `{name}` any more: remove the entry")
            elif count * SLACK + 10 < entry.requests_max:
                found.append(f"only {count} requests differ by `{name}`: lower its max from {entry.requests_max}")
        return found


def judge(differences: Mapping[str, Iterable[str]], entries: list[Accepted]) -> Judgement:
    """Return the verdict on the differences of each request, by origin."""
    unexpected: dict[str, str] = {}
    counts: Counter[Accepted] = Counter()
    for origin, lines in differences.items():
        area, met = origin.partition(":")[0], set()
        for line in lines:
            entry = next((each for each in entries if each.admits(area, line)), None)
            if entry is None:
                unexpected.setdefault(line, origin)
            else:
                met.add(entry)
        counts.update(met)
    return Judgement(unexpected, counts)
