"""The newest revision that a process has seen, in a file beside its keys, so that an older database is recognised.

A database that was restored by other means than `fedctl restore`, or another one at the same address, looks like the
newest state. Controllers would revert and remove in members what was done since. The start compares the database with
this file and refuses it, before anything is delivered; `fedctl db accept` takes it as it is, marked as restored.

The file has the database's identity and, at most once an hour, a revision with its time: an older database's time is
that of the last entry that it has reached. It is written while the process runs, so it may be some seconds old.
"""

import contextlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self

import orjson

from federation.apimachinery.clock import Clock, from_rfc3339, to_rfc3339
from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.interface import Store

FILE = "database.json"
_HISTORY_MAX = 1_000
_HISTORY_INTERVAL = timedelta(hours=1)
_WRITE_S = 10.0
_IDENTITY = "/core/namespaces/kube-system"


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest revision that a process has seen, and earlier ones, with their times."""

    identity: str
    """The uid of the namespace kube-system: no other database has it."""
    revisions: tuple[tuple[int, datetime], ...] = ()

    @property
    def newest(self) -> tuple[int, datetime] | None:
        """The newest revision and its time."""
        return self.revisions[-1] if self.revisions else None

    def at(self, revision: int, now: datetime) -> Self:
        """Return the record with a newer revision."""
        kept = self.revisions
        if len(kept) > 1 and kept[-1][1] - kept[-2][1] < _HISTORY_INTERVAL:
            kept = kept[:-1]
        return replace(self, revisions=(*kept, (revision, now))[-_HISTORY_MAX:])

    def time_of(self, revision: int) -> datetime | None:
        """Return a time at which the database was not beyond the revision, None if it is older than the record."""
        return max((at for seen, at in self.revisions if seen <= revision), default=None)


def problem_of(seen: Seen | None, identity: str, revision: int) -> str:
    """Return why a database with this identity and revision is not the one that was seen, "" if it is."""
    if seen is None or seen.newest is None:
        return ""
    newest, at = seen.newest
    if identity != seen.identity:
        return "it is another database"
    if revision < newest:
        return f"it has revision {revision}, and had {newest} at {to_rfc3339(at)}: it was restored from a backup"
    return ""


class SeenRevisions:
    """Checks and records what the process that owns the folder has seen of its database."""

    def __init__(self, store: Store, name: str, folder: Path, clock: Clock) -> None:
        self._store, self._name, self._folder, self._clock = store, name, folder, clock

    async def check(self) -> None:
        """Raise ConfigurationError if the database is not the one that the folder has seen, or older."""
        problem = problem_of(read(self._folder), await self._identity(), await self._store.revision())
        if problem:
            raise ConfigurationError(
                f"{self._name} is not as {self._folder / FILE} has seen it: {problem}. Controllers would revert and"
                " remove in members what was done since. Use the right database, or take this one with: fedctl db"
                f" accept --dir {self._folder}"
            )

    async def run(self) -> None:
        """Record the newest revision until cancelled."""
        seen = read(self._folder) or Seen(await self._identity())
        while True:
            with contextlib.suppress(StoreUnavailable):
                revision = await self._store.revision()
                if seen.newest is None or revision > seen.newest[0]:
                    seen = seen.at(revision, self._clock.now())
                    write(self._folder, seen)
            await self._clock.sleep(_WRITE_S)

    async def _identity(self) -> str:
        entry = await self._store.get(_IDENTITY)
        return str(orjson.loads(entry.value)["metadata"]["uid"]) if entry is not None else ""


def read(folder: Path) -> Seen | None:
    """Return what the folder has seen, None without a file; ConfigurationError for a malformed one."""
    path = folder / FILE
    try:
        found = orjson.loads(path.read_bytes())
        revisions = tuple((int(revision), from_rfc3339(str(at))) for revision, at in found["revisions"])
        return Seen(str(found["identity"]), revisions)
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path} is unreadable: {error}; remove it if the database is the right one"
        ) from error


def write(folder: Path, seen: Seen) -> None:
    """Replace the file; a disk without room costs the protection, not the process."""
    path = folder / FILE
    revisions = [[revision, to_rfc3339(at)] for revision, at in seen.revisions]
    with contextlib.suppress(OSError):
        temporary = path.with_suffix(".new")
        temporary.write_bytes(orjson.dumps({"identity": seen.identity, "revisions": revisions}))
        temporary.replace(path)


def forget(folder: Path) -> None:
    """Remove the file."""
    (folder / FILE).unlink(missing_ok=True)
