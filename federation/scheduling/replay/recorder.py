"""Record what decisions depend on, as a log of differences (`logentries.py`).

A record is text at once: its objects are still in the processor's caches, so this is cheaper than later; `take` only
compresses. A decision that repeats the last one of its object without effect is not recorded, as in the journal. The
recorder keeps the last recorded version of each object of the world, and the text of a few thousand federated objects.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from federation.api.resources import FEDERATED_CLUSTERS
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
    Header,
    Key,
    QuotaUse,
    Result,
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


@dataclass(frozen=True, slots=True)
class RecorderOptions:
    """Limits of the recorder."""

    segment_bytes_max: int = 4 << 20
    """Compressed bytes of a segment: old records are removed by segments."""
    pending_max: int = 10_000
    """Lines that wait to be written. Beyond it the decisions among them are dropped, and a new segment begins."""
    answers_bytes_max: int = 64 << 10
    """Bytes of the plugins' answers to one decision; larger ones are not recorded, and the decision not replayed."""
    objects_max: int = 8_192
    """Federated objects whose last record is kept, so that the next one is a difference."""


class InputRecorder:
    """The log of one process, from `begin` on."""

    def __init__(self, options: RecorderOptions | None = None, *, is_on: bool = True) -> None:
        self._options = options or RecorderOptions()
        self._is_on = is_on
        self._header: Header | None = None
        self._changed: dict[_WorldKey, Object | None] = {}
        self._lines: list[bytes] = []
        """Of the next chunk."""
        self._times_us: list[int] = []
        """Of the decisions in it."""
        self._last_results: dict[Key, Result] = {}
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
        self._make_room(entry.at_us, self._header)
        self._flush_world()
        self._add_assumed(unit.assumed)
        self._add_decision(entry, attempt, unit.current)

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

    def _make_room(self, at_us: int, header: Header) -> None:
        """Drop what waits if it is too much; begin a segment then, or when the one before is large or old."""
        if len(self._lines) >= self._options.pending_max:
            self.dropped += len(self._times_us)
            self.restart()
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

    def _flush_world(self) -> None:
        """Put the changes of the world before the first decision that saw them."""
        for key, source in self._changed.items():
            self._put(key, source)
        self._changed.clear()

    # -- making text of it

    def restart(self) -> None:
        """Begin a new segment with the next decision; decisions that wait are dropped."""
        self._lines, self._times_us = [], []
        self._segment = 0

    def take(self) -> Chunk | None:
        """Return what was recorded since the last call, None for nothing."""
        if not self._times_us:
            return None
        lines, self._lines = self._lines, []
        times_us, self._times_us = self._times_us, []
        content = compress(lines)
        self._bytes += len(content)
        self._number += 1
        return Chunk(self._segment, self._number, times_us[0], times_us[-1], len(times_us), content)

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
        obj, known = project_federated(attempt.federated, attempt.federated_type), self._objects.get(entry.key)
        before, placed = (None, _NOWHERE) if known is None else (orjson.loads(known[0]), known[1])
        entry.whole, entry.patch = (obj, None) if before is None else (None, create_merge_patch(before, obj))
        entry.current = None if current == placed and _is_sorted(current) else dict(current)
        if known is None and len(self._objects) >= self._options.objects_max:
            self._objects.clear()
        self._objects[entry.key] = orjson.dumps(obj), entry.result.placements or current
        to_difference(entry, current, self._places)
        self._lines.append(_encode_difference(entry, before, obj))
        self._times_us.append(entry.at_us)

    def _add_assumed(self, assumed: Assumed) -> None:
        """Add the change since the decision before; all assumed replicas if that is not in the segment."""
        before, self._noted = self._noted, assumed
        is_whole, self._has_assumed = not self._has_assumed, True
        changes = None if is_whole else _changes(before, assumed)
        if changes is None:
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
    return QuotaUse([(quota.name, dict(quota.hard)) for quota in headroom.quotas], dict(headroom.others))


def _to_answers(answers: Sequence[Sequence[PluginResponse]]) -> list[list[Answer]]:
    return [
        [Answer(answer.status, answer.body.decode(errors="replace"), answer.error) for answer in exchange]
        for exchange in answers
    ]
