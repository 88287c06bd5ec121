"""Tests that fail by chance: named in `tests/quarantine.toml` with owner, reason and date, for two weeks at most.

A quarantined test still runs; its failure is printed as expected and does not fail the run. The list is for the time in
which somebody looks for the cause. `tests/architecture/test_quarantine.py` fails the build when an entry is incomplete,
too old, or was in the list before.
"""

import datetime as dt
import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "quarantine.toml"
DAYS_MAX = 14
ENTRIES_MAX = 5


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One entry. `test` is a node ID, without parameters if it is meant for all of them."""

    test: str
    owner: str
    reason: str
    since: dt.date


def quarantined(text: str | None = None) -> list[Quarantined]:
    """Return the entries of the file, or of its text at another time; ValueError names what is missing."""
    found = tomllib.loads(FILE.read_text() if text is None else text)
    try:
        entries = [Quarantined(**entry) for entry in found.get("quarantined", [])]
    except TypeError as error:
        raise ValueError(f"tests/quarantine.toml: an entry has test, owner, reason and since: {error}") from error
    return entries


def faults(entries: list[Quarantined], *, earlier: list[Quarantined], today: dt.date) -> list[str]:
    """Return what is wrong with the list; `earlier` are all entries that it ever had before."""
    wrong = [f"{len(entries)} tests are in quarantine; at most {ENTRIES_MAX} can be"] * (len(entries) > ENTRIES_MAX)
    first = {entry.test: entry.since for entry in sorted(earlier, key=lambda entry: entry.since, reverse=True)}
    for entry in entries:
        age = (today - entry.since).days
        if not entry.owner.strip() or not entry.reason.strip():
            wrong.append(f"{entry.test} has no owner or no reason")
        if age > DAYS_MAX:
            wrong.append(f"{entry.test} is in quarantine for {age} days: mend its cause or delete it")
        if age < 0:
            wrong.append(f"{entry.test} has a date in the future")
        if (was := first.get(entry.test)) is not None and was < entry.since:
            wrong.append(f"{entry.test} was in quarantine before, since {was}: its time cannot begin again")
    return wrong
