"""Record what decisions depend on, as a log of differences (`logentries.py`).

A decision only leaves its outcome and the objects that it saw, which nobody changes. `encode` makes text of them, one
decision at a time, between other work; `take` makes it of all that are left. A decision that repeats the last one of
its object without effect is not recorded, as in the journal. The recorder keeps the last recorded version of each
object of the world, and the text of a few thousand federated objects.

Decision: docs/decisions/0172-records-are-written-after-decisions.md
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.mergepatch import apply_merge_patch, create_merge_patch
from federation.apimachinery.resources import Object, Resource
from federation.scheduling.answers import Due
from federation.scheduling.attempt import SchedulingAttempt
from federation.scheduling.engine import Decision, Placements
from federation.scheduling.framework.assumed import AssumedReplicas, Changes, Request
from federation.scheduling.framework.quotaheadroom import QUOTA, Headroom
from federation.scheduling.framework.relations import RELATIONS
from federation.scheduling.framework.types import Assumed, PluginResponse
from federation.scheduling.occasions import Occasion
from federation.scheduling.replay.logentries import (
    Answer,
    AssumedChange,
    Chunk,
    ClusterPlaces,
    Decided,
    Header,
    Key,
    QuotaUse,
    WorldChange,
    compress,
    encode,
    result_of,
    to_difference,
    to_us,
)
from federation.scheduling.replay.projection import name_of, project, project_federated

_NOWHERE: Placements = {}
_DAY_US = 24 * 3600 * 1_000_000
_WorldKey = tuple[Resource, str, str]
_Answers = Sequence[Sequence[PluginResponse]]


@dataclass(frozen=True, slots=True)
class RecorderOptions:
    """Limits of the recorder."""

    segment_bytes_max: int = 4 << 20
    """Compressed bytes of a segment: old records are removed by segments."""
    pending_max: int = 10_000
    """Lines that wait to be written. Beyond it the decisions among them are dropped, and a new segment begins."""
    answers_bytes_max: int = 64 << 10
    """Bytes of the plugins' answers to one decision; larger ones are not recorded, and the decision not replayed."""
    waiting_max: int = 512
    """Decisions that wait to be made text of; beyond it each decision does so for the oldest one."""
    objects_max: int = 8_192
    """Federated objects whose last record is kept, so that the next one is a difference."""


class _Waiting(NamedTuple):
    """A decision without its text, and the changes of the world before it."""

    attempt: SchedulingAttempt
    due: Due
    decision: Decision
    answers: _Answers
    assumed_changes: list[tuple[Request, Changes]] | None
    """Of assumed replicas since the decision before, whose log forgets them; None if they are not known."""
    changed: dict[_WorldKey, Object | None]


class Draft(NamedTuple):
    """A chunk that is not compressed yet."""

    segment: int
    number: int
    times_us: list[int]
    lines: list[bytes]


class InputRecorder:
    """The log of one process, from `begin` on."""

    def __init__(self, options: RecorderOptions | None = None, *, is_on: bool = True) -> None:
        self._options = options or RecorderOptions()
        self._is_on = is_on
        self._header: Header | None = None
        self._changed: dict[_WorldKey, Object | None] = {}
        self._waiting: deque[_Waiting] = deque()
        self._lines: list[bytes] = []
        """Of the next chunk."""
        self._times_us: list[int] = []
        """Of the decisions in it."""
        self._last: dict[Key, tuple[str, str, Placements]] = {}
        """Outcome, reason and placements of the last decision about objects."""
        self._segment = 0
        self._number = 0
        self._bytes = 0
        self._written: dict[_WorldKey, Object | bytes] = {}
        """Clusters, which report often, are kept as the objects that caches share; other kinds as text."""
        self._objects: dict[Key, tuple[bytes, Placements]] = {}
        """The last record of federated objects, and their placement after it."""
        self._noted: Assumed = {}
        """The assumed replicas of the last decision."""
        self._has_assumed = False
        """Whether the segment has them."""
        self._places = ClusterPlaces()
        self.dropped = 0
        """Decisions that were dropped."""

    # -- what happens

    def begin(self, header: Header) -> None:
        """Record from now on, in a new segment."""
        self.restart()
        self._header = header if self._is_on else None

    def observe(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Handle an event of an object that decisions depend on."""
        metadata = (new if new is not None else old or {})["metadata"]
        key = (resource, str(metadata.get("namespace") or ""), str(metadata["name"]))
        self._changed[key] = new

    def decided(
        self,
        attempt: SchedulingAttempt,
        due: Due,
        decision: Decision,
        answers: _Answers = (),
    ) -> None:
        """Record a decision of the engine."""
        if self._header is None or due.occasion is None or self._is_repetition(key_of(attempt.federated), decision):
            return
        changed, self._changed = self._changed, {}
        before, self._noted = self._noted, due.unit.assumed
        changes = _changes(before, due.unit.assumed)
        self._waiting.append(_Waiting(attempt, due, decision, answers, changes, changed))
        if len(self._waiting) > self._options.waiting_max:
            self.encode()

    def _is_repetition(self, key: Key, decision: Decision) -> bool:
        last = self._last.get(key)
        if len(self._last) > self._options.objects_max:
            self._last.clear()
        self._last[key] = this = decision.outcome, decision.reason, decision.placements
        has_effect = decision.is_success and decision.placements != decision.unit.current
        return not has_effect and last == this

    def _to_entry(self, due: Due, occasion: Occasion, key: Key, decision: Decision, answers: _Answers) -> Decided:
        """Return a decision as records have it, without its object."""
        unit = due.unit
        size = sum(len(answer.body) for exchange in answers for answer in exchange)
        quota = QUOTA.of(unit)
        return Decided(
            key,
            to_us(occasion.now),
            result_of(decision),
            is_unschedulable=occasion.is_unschedulable,
            can_place_more=occasion.can_place_more,
            is_plugin_back=occasion.is_plugin_back,
            homes=list(occasion.homes),
            completes=occasion.completes,
            away=list(occasion.away),
            relations=RELATIONS.of(unit),
            quota=_to_use(quota) if isinstance(quota, Headroom) else None,
            answers=_to_answers(answers) if size <= self._options.answers_bytes_max else None,
        )

    def _make_room(self, at_us: int, header: Header) -> None:
        """Drop what waits if it is too much; begin a segment then, or when the one before is large or old."""
        if len(self._lines) >= self._options.pending_max:
            self.dropped += len(self._times_us)
            self._drop_lines()
        is_full = self._bytes > self._options.segment_bytes_max or at_us - self._segment > _DAY_US
        if not self._lines and is_full:
            self._start_segment(at_us, header)

    def _start_segment(self, at_us: int, header: Header) -> None:
        """Write the world as the last segment left it."""
        self._segment, self._number, self._bytes, self._has_assumed = at_us, 0, 0, False
        self._objects.clear()
        self._places = ClusterPlaces()
        self._lines.append(encode(header))
        for (resource, namespace, name), known in self._written.items():
            obj = orjson.loads(known) if isinstance(known, bytes) else known
            self._lines.append(encode(WorldChange(name_of(resource), namespace, name, obj)))

    # -- making text of it

    @property
    def is_behind(self) -> bool:
        """Whether decisions wait to be made text of."""
        return bool(self._waiting)

    def encode(self) -> bool:
        """Make text of the oldest decision that waits; return False if none does."""
        if not self._waiting or self._header is None:
            return False
        attempt, due, decision, answers, changes, changed = self._waiting.popleft()
        assert due.occasion is not None  # others do not wait
        entry = self._to_entry(due, due.occasion, key_of(attempt.federated), decision, answers)
        self._make_room(entry.at_us, self._header)
        for key, source in changed.items():  # before the first decision that saw them
            self._put(key, source)
        self._add_assumed(due.unit.assumed, changes)
        self._add_decision(entry, attempt, due.unit.current)
        return True

    def restart(self) -> None:
        """Begin a new segment with the next decision; decisions that wait are dropped, not the changes before them."""
        changed: dict[_WorldKey, Object | None] = {}
        while self._waiting:
            changed |= self._waiting.popleft().changed
        self._changed = changed | self._changed
        self._drop_lines()

    def _drop_lines(self) -> None:
        self._lines, self._times_us = [], []
        self._segment = 0

    def draft(self) -> Draft | None:
        """Return what was recorded since the last call, None for nothing; `packed` needs its compressed lines."""
        while self.encode():
            pass
        if not self._times_us:
            return None
        self._number += 1
        draft = Draft(self._segment, self._number, self._times_us, self._lines)
        self._lines, self._times_us = [], []
        return draft

    def packed(self, draft: Draft, content: bytes) -> Chunk:
        """Return the chunk of a draft with its content."""
        if draft.segment == self._segment:
            self._bytes += len(content)
        times_us = draft.times_us
        return Chunk(draft.segment, draft.number, times_us[0], times_us[-1], len(times_us), content)

    def take(self) -> Chunk | None:
        """Return what was recorded since the last call, None for nothing."""
        draft = self.draft()
        return None if draft is None else self.packed(draft, compress(draft.lines))

    def _put(self, key: _WorldKey, source: Object | None) -> None:
        """Add the difference between the last version of an object and this one."""
        resource, namespace, name = key
        obj, known = project(resource, source) if source is not None else None, self._written.get(key)
        before = orjson.loads(known) if isinstance(known, bytes) else known
        if obj is None:
            if before is not None:
                del self._written[key]
                self._lines.append(encode(WorldChange(name_of(resource), namespace, name)))
            return
        self._written[key] = obj if resource == FEDERATED_CLUSTERS else orjson.dumps(obj)
        entry = WorldChange(name_of(resource), namespace, name)
        if before is not None and not (patch := create_merge_patch(before, obj)):
            return
        entry.whole, entry.patch = (obj, None) if before is None else (None, patch)
        self._lines.append(_encode_difference(entry, before, obj))

    def _add_decision(self, entry: Decided, attempt: SchedulingAttempt, current: Placements) -> None:
        obj = project_federated(attempt.federated, attempt.federated_type, self._places.number_of)
        known = self._objects.get(entry.key)
        before, placed = (None, _NOWHERE) if known is None else (orjson.loads(known[0]), known[1])
        entry.whole, entry.patch = (obj, None) if before is None else (None, create_merge_patch(before, obj))
        entry.current = None if current == placed and _is_sorted(current) else dict(current)
        if known is None and len(self._objects) >= self._options.objects_max:
            self._objects.clear()
        self._objects[entry.key] = orjson.dumps(obj), entry.result.placements or current
        to_difference(entry, current, self._places)
        self._lines.append(_encode_difference(entry, before, obj))
        self._times_us.append(entry.at_us)

    def _add_assumed(self, assumed: Assumed, changes: list[tuple[Request, Changes]] | None) -> None:
        """Add the change since the decision before; all assumed replicas if that is not in the segment."""
        is_whole, self._has_assumed = not self._has_assumed, True
        if is_whole or changes is None:
            is_whole = True
            changes = [
                (request, [(name, count)]) for name, counts in assumed.items() for request, count in counts.items()
            ]
        elif not changes:
            return
        grouped = [(request, self._places.grouped(counts)) for request, counts in _by_request(changes).items()]
        self._lines.append(encode(AssumedChange(grouped, self._places.untold(), is_whole)))


def _changes(before: Assumed, after: Assumed) -> list[tuple[Request, Changes]] | None:
    """Return the changes from one version of the assumed replicas to another, None if they are not known."""
    if after is before:
        return []
    if isinstance(before, AssumedReplicas) and isinstance(after, AssumedReplicas):
        return after.displaced.between(before.version, after.version) if after.displaced is before.displaced else None
    return None


def _by_request(changes: list[tuple[Request, Changes]]) -> dict[Request, dict[str, int]]:
    """Return the sum of the changes in each cluster."""
    found: dict[Request, dict[str, int]] = {}
    for request, counts in changes:
        if request not in found and len(only := dict(counts)) == len(counts):
            found[request] = only  # what a decision adds: hundreds of clusters, none of them twice
            continue
        sums = found.setdefault(request, {})
        for name, difference in counts:
            if left := sums.get(name, 0) + difference:
                sums[name] = left
            else:
                sums.pop(name, None)
    return found


def key_of(federated: Mapping[str, Any]) -> Key:
    """Return the key of a federated object in records."""
    metadata = federated["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])


def _is_sorted(placements: Placements) -> bool:
    """Return whether the clusters are in the order in which an object stores them."""
    names = list(placements)
    return names == sorted(names)


def _encode_difference(entry: WorldChange | Decided, before: Object | None, after: Object) -> bytes:
    """Return the line of an entry that has a patch, or the whole object if that has a null, which no patch can set."""
    line = encode(entry)
    if before is None or b"null" not in line or apply_merge_patch(before, entry.patch) == after:
        return line
    entry.whole, entry.patch = after, None
    return encode(entry)


def _to_use(headroom: Headroom) -> QuotaUse:
    hard = [
        (name, {measure: limit.nominal for measure, limit in scope.limits.items()})
        for name, scope in sorted(headroom.scopes.items())
    ]
    requests = {name: dict(request) for name, request in headroom.requests.items()}
    return QuotaUse(hard, dict(headroom.others), dict(headroom.present), requests)


def _to_answers(answers: _Answers) -> list[list[Answer]]:
    return [
        [Answer(answer.status, answer.body.decode(errors="replace"), answer.error) for answer in exchange]
        for exchange in answers
    ]
