"""The timeline as one lane per cluster: when it did not answer, and what came to it and left it. Pure.

Places are in percent of the time span. A step collects what happened within it, so that a thousand moves of one second
are one mark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.naturalorder import natural_key
from federation.web.ui.decisionline import grown_clusters

LANES_MAX = 24
_STEPS = 120
_HEIGHT = 14.0
"""Height of the larger marks, above and below the middle of a lane."""
_LEAST = 4.0


@dataclass(frozen=True, slots=True)
class Dark:
    """A time in which a cluster did not answer."""

    x: float
    width: float
    words: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Changes in one step: objects that came or grew are drawn upwards, those that left or shrank downwards."""

    x: float
    width: float
    up: float
    down: float
    words: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One cluster. `words` say what its picture shows."""

    cluster: str
    darks: tuple[Dark, ...]
    marks: tuple[Mark, ...]
    words: str


@dataclass(slots=True)
class _Found:
    changes: list[tuple[float, bool]] = field(default_factory=list)
    """When lost (False) or back (True), in percent, the oldest first."""
    steps: dict[int, list[int]] = field(default_factory=dict)
    """Objects that came and that left, by step."""

    @property
    def weight(self) -> int:
        return 10_000 * len(self.changes) + sum(map(sum, self.steps.values()))


def lanes_of(
    incidents: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]], start: datetime, end: datetime
) -> tuple[list[Lane], int]:
    """Return the lanes of clusters where something happened, and how many more there are.

    Clusters that were lost come before those with most moves; both lists have the newest first.
    """
    found: dict[str, _Found] = {}
    span_s = max(1.0, (end - start).total_seconds())

    def place(text: Any) -> float | None:
        at = parse_rfc3339(text)
        return None if at is None or not start <= at <= end else 100 * (at - start).total_seconds() / span_s

    new: set[str] = set()
    for incident in reversed(incidents):
        at, what, cluster = place(incident["at"]), incident["what"], incident["cluster"]
        if what == "joined":
            new.add(cluster)
        elif at is not None and what in ("lost", "back"):
            if what == "lost" or cluster not in new:  # the first answer of a new cluster ends nothing
                found.setdefault(cluster, _Found()).changes.append((at, what == "back"))
            new.discard(cluster)
    for record in records:
        if (at := place(record["at"])) is None:
            continue
        number = min(_STEPS - 1, int(at * _STEPS / 100))
        for cluster, is_more in grown_clusters(record["explanation"]):
            if (lane := found.get(cluster)) is None:
                lane = found[cluster] = _Found()
            lane.steps.setdefault(number, [0, 0])[not is_more] += 1
    chosen = sorted(found, key=lambda name: (-found[name].weight, natural_key(name)))[:LANES_MAX]
    most = max((count for each in found.values() for step in each.steps.values() for count in step), default=1)
    lanes = [_to_lane(name, found[name], most) for name in sorted(chosen, key=natural_key)]
    return lanes, len(found) - len(lanes)


def _to_lane(cluster: str, found: _Found, most: int) -> Lane:
    darks = tuple(_darks(found.changes))
    marks = []
    for step, (came, left) in sorted(found.steps.items()):
        words = " and ".join(
            f"{count} {verb}" for count, verb in ((came, "came or grew"), (left, "left or shrank")) if count
        )
        x, width = round(100 * step / _STEPS, 2), round(80 / _STEPS, 2)
        marks.append(Mark(x, width, _size(came, most), _size(left, most), words))
    came, left = (sum(step[at] for step in found.steps.values()) for at in (0, 1))
    parts = [f"objects came or grew {to_count(came, 'time')}, and left or shrank {to_count(left, 'time')}"]
    parts = parts if found.steps else []
    parts += [f"did not answer {to_count(len(darks), 'time')}"] if darks else []
    return Lane(cluster, darks, tuple(marks), f"{cluster}: {'; '.join(parts)}")


def _size(count: int, most: int) -> float:
    """Return the height of a mark: by the root, so that one object beside hundreds is still seen."""
    return round(max(_LEAST, _HEIGHT * (count / most) ** 0.5), 1) if count else 0.0


def _darks(changes: Sequence[tuple[float, bool]]) -> list[Dark]:
    """Return the times without an answer, cut to the span."""
    darks = []
    since: float | None = 0.0 if changes and changes[0][1] else None
    for at, is_back in changes:
        if is_back and since is not None:
            darks.append(Dark(round(since, 2), round(max(0.5, at - since), 2), "did not answer"))
            since = None
        elif not is_back and since is None:
            since = at
    if since is not None:
        darks.append(Dark(round(since, 2), round(max(0.5, 100 - since), 2), "does not answer"))
    return darks
