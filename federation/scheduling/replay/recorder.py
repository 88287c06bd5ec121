"""Record what decisions depend on, as a log of differences (`logentries.py`).

Recording adds references to objects that never change; `take` makes text of them later, outside of decisions. A
decision that repeats the last one of its object without effect is not recorded, as in the journal. The recorder keeps
the last recorded version of each object of the world, and of a few thousand federated objects, as text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from federation.apimachinery.mergepatch import apply_merge_patch, create_merge_patch
from federation.apimachinery.resources import Object, Resource
from federation.scheduling.attempt import Due, SchedulingAttempt
from federation.scheduling.engine import Decision, Placements
from federation.scheduling.framework.assumed import AssumedReplicas, Changes, Request
from federation.scheduling.framework.quotaheadroom import Headroom
from federation.scheduling.framework.types import Assumed, PluginResponse
from federation.scheduling.replay.logentries import (
    Answer,
    AssumedChange,
    Chunk,
    ClusterPlaces,
    Decided,
    Entry,
    Header,
    Key,
    QuotaUse,
    Result,
    WorldChange,
    compress,
    encode,
    placed_by,
    result_of,
    to_difference,
    to_us,
)
from federation.scheduling.replay.projection import name_of, project, project_federated

_DAY_US = 24 * 3600 * 1_000_000
_WorldKey = tuple[Resource, str, str]


@dataclass(frozen=True, slots=True)
class RecorderOptions:
    """Limits of the recorder."""

    segment_bytes_max: int = 4 << 20
    """Compressed bytes of a segment: old records are removed by segments."""
    pending_max: int = 10_000
    """Entries that wait to be written. Beyond it those that wait are dropped and counted, and a new segment begins."""
    answers_bytes_max: int = 64 << 10
    """Bytes of the plugins' answers to one decision; larger ones are not recorded, and the decision not replayed."""
    objects_max: int = 8_192
    """Federated objects whose last record is kept, so that the next one is a difference."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A decision that is not text yet."""

    attempt: SchedulingAttempt
    current: Placements
    assumed: Assumed
    changes: list[tuple[Request, Changes]] | None
    """Of the assumed replicas since the decision before, None if they are not known."""
    entry: Decided


class InputRecorder:
    """The log of one process, from `begin` on."""

    def __init__(self, options: RecorderOptions | None = None, *, is_on: bool = True) -> None:
        self._options = options or RecorderOptions()
        self._is_on = is_on
        self._header: Header | None = None
        self._changed: dict[_WorldKey, Object | None] = {}
        self._pending: list[_Pending | tuple[_WorldKey, Object | None] | Entry] = []
        self._last_results: dict[Key, Result] = {}
        self._segment = 0
        self._number = 0
        self._bytes = 0
        self._written: dict[_WorldKey, bytes] = {}
        self._objects: dict[Key, bytes] = {}
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
        answers: Sequence[Sequence[PluginResponse]] = (),
    ) -> None:
        """Record a decision of the engine."""
        occasion, unit = due.occasion, due.unit
        if self._header is None or occasion is None:
            return
        metadata = attempt.federated["metadata"]
        key, result = (str(metadata.get("namespace") or ""), str(metadata["name"])), result_of(decision)
        if self._is_repetition(key, result, decision):
            return
        size = sum(len(answer.body) for exchange in answers for answer in exchange)
        quota = unit.quota
        entry = Decided(
            key,
            to_us(occasion.now),
            result,
            is_unschedulable=occasion.is_unschedulable,
            can_place_more=occasion.can_place_more,
            is_plugin_back=occasion.is_plugin_back,
            homes=list(occasion.homes),
            completes=occasion.completes,
            away=list(occasion.away),
            relations=unit.relations,
            quota=_to_use(quota) if isinstance(quota, Headroom) else None,
            answers=_to_answers(answers) if size <= self._options.answers_bytes_max else None,
        )
        self._flush_world()
        self._append(_Pending(attempt, unit.current, unit.assumed, self._note(unit.assumed), entry))

    def _note(self, assumed: Assumed) -> list[tuple[Request, Changes]] | None:
        """Return the changes of assumed replicas since the last call: later they may be forgotten."""
        before, self._noted = self._noted, assumed
        if assumed is before:
            return []
        if isinstance(before, AssumedReplicas) and isinstance(assumed, AssumedReplicas):
            return (
                assumed.displaced.between(before.version, assumed.version)
                if assumed.displaced is before.displaced
                else None
            )
        return None

    def _is_repetition(self, key: Key, result: Result, decision: Decision) -> bool:
        last = self._last_results.get(key)
        if len(self._last_results) > self._options.objects_max:
            self._last_results.clear()
        self._last_results[key] = result
        has_effect = decision.is_success and decision.placements != decision.unit.current
        same = last is not None and (last.outcome, last.reason, last.placements) == (
            result.outcome,
            result.reason,
            result.placements,
        )
        return same and not has_effect

    def _flush_world(self) -> None:
        """Put the changes of the world before the first decision that saw them."""
        if self._changed:
            self._pending += self._changed.items()
            self._changed.clear()

    def _append(self, entry: _Pending | Entry) -> None:
        if len(self._pending) >= self._options.pending_max:
            self.dropped += sum(isinstance(each, _Pending) for each in self._pending)
            self.restart()
        self._pending.append(entry)

    # -- making text of it

    def restart(self) -> None:
        """Begin a new segment with the next chunk; decisions that wait are dropped."""
        pending, self._pending = self._pending, []
        for each in pending:
            if isinstance(each, tuple):
                self._put(*each, [])
        self._segment = 0

    def take(self) -> Chunk | None:
        """Return what was recorded since the last call, None for nothing."""
        decisions = [each for each in self._pending if isinstance(each, _Pending)]
        if not decisions or self._header is None:
            return None
        pending, self._pending = self._pending, []
        first_us, last_us = decisions[0].entry.at_us, decisions[-1].entry.at_us
        lines: list[bytes] = []
        if self._bytes > self._options.segment_bytes_max or first_us - self._segment > _DAY_US:
            self._start_segment(first_us, self._header, lines)
        for each in pending:
            if isinstance(each, _Pending):
                self._add_decision(each, lines)
            elif isinstance(each, tuple):
                self._put(*each, lines)
            else:
                lines.append(encode(each))
        content = compress(lines)
        self._bytes += len(content)
        self._number += 1
        return Chunk(self._segment, self._number, first_us, last_us, len(decisions), content)

    def _start_segment(self, at_us: int, header: Header, lines: list[bytes]) -> None:
        """Write the world as the last chunk left it."""
        self._segment, self._number, self._bytes, self._has_assumed = at_us, 0, 0, False
        self._objects.clear()
        self._places = ClusterPlaces()
        lines.append(encode(header))
        for (resource, namespace, name), text in self._written.items():
            lines.append(encode(WorldChange(name_of(resource), namespace, name, orjson.loads(text))))

    def _put(self, key: _WorldKey, source: Object | None, lines: list[bytes]) -> None:
        """Add the difference between the last version of an object and this one."""
        resource, namespace, name = key
        obj, known = project(resource, source) if source is not None else None, self._written.get(key)
        text = orjson.dumps(obj) if obj is not None else None
        if text == known:
            return
        whole, patch = _difference(orjson.loads(known) if known is not None else None, obj, text)
        lines.append(encode(WorldChange(name_of(resource), namespace, name, whole, patch)))
        if text is None:
            del self._written[key]
        else:
            self._written[key] = text

    def _add_decision(self, pending: _Pending, lines: list[bytes]) -> None:
        entry, attempt = pending.entry, pending.attempt
        if (changed := self._assumed_change(pending)) is not None:
            lines.append(encode(changed))
        obj, known = project_federated(attempt.federated, attempt.federated_type), self._objects.get(entry.key)
        before, placed = orjson.loads(known) if known is not None else (None, {})
        current = dict(pending.current)
        text = orjson.dumps(obj)
        entry.whole, entry.patch = _difference(before, obj, text)
        entry.current = None if list(placed.items()) == list(current.items()) else current
        if known is None and len(self._objects) >= self._options.objects_max:
            self._objects.clear()
        self._objects[entry.key] = orjson.dumps((orjson.Fragment(text), placed_by(entry.result, current)))
        to_difference(entry, current, self._places)
        lines.append(encode(entry))

    def _assumed_change(self, pending: _Pending) -> AssumedChange | None:
        """Return the change since the decision before; all assumed replicas if that is not in the segment."""
        is_whole, changes = pending.changes is None or not self._has_assumed, pending.changes or []
        self._has_assumed = True
        if is_whole:
            changes = [
                (request, [(name, count)])
                for name, counts in pending.assumed.items()
                for request, count in counts.items()
            ]
        elif not changes:
            return None
        by_request: dict[Request, dict[str, int]] = {}
        for request, counts in changes:
            sums = by_request.setdefault(request, {})
            for name, difference in counts:
                sums[name] = sums.get(name, 0) + difference
        grouped = [
            (request, self._places.grouped({name: count for name, count in sums.items() if count}))
            for request, sums in by_request.items()
        ]
        return AssumedChange(grouped, self._places.untold(), is_whole)


def _difference(before: Object | None, after: Object | None, text: bytes | None) -> tuple[Object | None, Object | None]:
    """Return the object as a whole, or as a patch of the version before it; a patch cannot set null."""
    if before is None or after is None:
        return after, None
    patch = create_merge_patch(before, after)
    if b"null" in (text or b"") and apply_merge_patch(before, patch) != after:
        return after, None
    return None, patch


def _to_use(headroom: Headroom) -> QuotaUse:
    return QuotaUse([(quota.name, dict(quota.hard)) for quota in headroom.quotas], dict(headroom.others))


def _to_answers(answers: Sequence[Sequence[PluginResponse]]) -> list[list[Answer]]:
    return [
        [Answer(answer.status, answer.body.decode(errors="replace"), answer.error) for answer in exchange]
        for exchange in answers
    ]
