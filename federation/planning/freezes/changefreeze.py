"""Find the ChangeFreeze that holds a change of an object in a cluster now, and its end. Pure.

A freeze is stored, and what it holds is decided again at each look, so a restart inside a window changes nothing. A
malformed freeze holds everything that it may be about: a mistake in it must not lift it.

Reference: docs/reference/freezes.md.
Decision: docs/decisions/0106-a-freeze-is-decided-again-at-each-look.md
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from operator import itemgetter
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.selectors import EVERYTHING, Selector, SelectorError, compile_label_selector
from federation.planning.changehold import Hold
from federation.planning.freezes.names import FREEZE_EXCEPTIONS
from federation.planning.guard.losses import held_placement, lost_clusters
from federation.planning.windows import MALFORMED, end_of, is_open

FOLLOWING_MAX = 32
"""How many windows without a gap between them are followed to their end."""
_MALFORMED = (SelectorError, *MALFORMED)


class Change(StrEnum):
    """The kinds of change that a freeze can hold."""

    EVICTIONS = "Evictions"
    MOVES = "Moves"
    UPDATES = "Updates"


@dataclass(frozen=True, slots=True)
class Freeze:
    """A compiled ChangeFreeze; `problem` says why it cannot be read."""

    name: str
    reason: str
    holds: frozenset[Change]
    selector: Selector
    namespaces: frozenset[str]
    exceptions: frozenset[str]
    windows: tuple[Mapping[str, Any], ...]
    problem: str = ""

    def concerns(self, namespace: str, name: str, labels: Mapping[str, str], change: Change) -> bool:
        """Return whether it holds this change of an object while one of its windows is open."""
        if change not in self.holds or (self.namespaces and namespace not in self.namespaces):
            return False
        return self.exceptions.isdisjoint((f"{namespace}/{name}", f"{namespace}/*")) and self.selector.matches(labels)

    def end(self, now: datetime) -> datetime | None:
        """Return the end of the windows that are open now and of those that follow without a gap, None if none is open.

        Of more than `FOLLOWING_MAX` it is the end of the last one that was looked at: `end_text` says so.
        """
        until = None
        for _ in range(FOLLOWING_MAX):
            if (later := self._end_of_open(until or now)) is None:
                break
            until = later
        return until

    def end_text(self, until: datetime) -> str:
        """Return how people read an end."""
        return f"{'at least ' if self._end_of_open(until) else ''}until {to_rfc3339(until)}"

    def _end_of_open(self, at: datetime) -> datetime | None:
        return max((end for window in self.windows if (end := end_of(window, at)) is not None), default=None)


def compile_freeze(source: Mapping[str, Any]) -> Freeze:
    """Return the compiled form of a ChangeFreeze; a malformed one holds every change in every cluster."""
    spec, metadata = source.get("spec") or {}, source["metadata"]
    name, reason = str(metadata["name"]), str(spec.get("reason") or "")
    given = (metadata.get("annotations") or {}).get(FREEZE_EXCEPTIONS) or ""
    exceptions = frozenset(part.strip() for part in given.split(",") if part.strip())
    namespaces = frozenset(map(str, spec.get("namespaces") or ()))
    try:
        selector = compile_label_selector(spec["clusterSelector"]) if spec.get("clusterSelector") else EVERYTHING
        holds = frozenset(map(Change, spec.get("holds") or Change))
        windows = tuple(spec.get("windows") or ())
        for window in windows:
            is_open(window, _ANY_TIME)
    except _MALFORMED as error:
        return Freeze(name, reason, frozenset(Change), EVERYTHING, namespaces, exceptions, (), str(error))
    return Freeze(name, reason, holds, selector, namespaces, exceptions, windows)


_ANY_TIME = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


def find_frozen(
    freezes: Iterable[Freeze],
    namespace: str,
    name: str,
    labels: Mapping[str, str],
    change: Change,
    now: datetime,
) -> Hold | None:
    """Return the freeze that holds a change of an object in a cluster with these labels for longest, None for none.

    Of several that end at the same time, it is the first.
    """
    holding: list[tuple[datetime, Freeze]] = []
    for freeze in freezes:
        if not freeze.concerns(namespace, name, labels, change):
            continue
        if freeze.problem:
            return Hold(freeze.name, f"ChangeFreeze {freeze.name} is malformed: {freeze.problem}", None)
        if (until := freeze.end(now)) is not None:
            holding.append((until, freeze))
    if not holding:
        return None
    until, freeze = max(holding, key=itemgetter(0))
    message = f"ChangeFreeze {freeze.name} holds {freeze.end_text(until)}: {freeze.reason}"
    return Hold(freeze.name, message, until)


def moved_clusters(
    before: Mapping[str, int | None], after: Mapping[str, int | None], wanted: int | None
) -> frozenset[str]:
    """Return the clusters that a decision moves something out of or into, none for a first placement or for scaling.

    `wanted` are the object's replicas: those that it has too many may leave, and new ones may come.
    """
    if not before or held_placement(before, after, wanted) == after:
        return frozenset()
    changed = {name for name in after if after[name] != before.get(name, 0)}
    return lost_clusters(before, after) | changed


def find_frozen_move(
    before: Mapping[str, int | None],
    after: Mapping[str, int | None],
    wanted: int | None,
    find: Callable[[str, Change], Hold | None],
    *,
    is_evicting: bool,
) -> Hold | None:
    """Return the freeze that holds the move of a decision as a whole, None if nothing moves or nothing holds it.

    `find` returns the freeze that holds a change of the object in a cluster.
    """
    change = Change.EVICTIONS if is_evicting else Change.MOVES
    found = (find(cluster, change) for cluster in sorted(moved_clusters(before, after, wanted)))
    return next((frozen for frozen in found if frozen is not None), None)


def window_problems(spec: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield what is wrong with the windows of a freeze that its schema has accepted: the field, and why."""
    for index, window in enumerate(spec.get("windows") or ()):
        try:
            is_open(window, _ANY_TIME)
        except MALFORMED as error:
            yield f"spec.windows[{index}]", f"{error}; give five fields of cron, a duration and the name of a time zone"
