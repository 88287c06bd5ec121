"""Records of decisions: a log of entries, in segments of chunks that are compressed.

A segment begins with everything that its decisions depend on, and goes on with differences, so that a segment is read
without the one before it. A change of the world comes before the first decision that saw it. Objects are JSON merge
patches of the version before them in the segment, or whole. Keys are stable: add, do not rename.
"""

import itertools
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
import orjson
from msgspec import structs

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import Object
from federation.scheduling.engine import Decision, Outcome
from federation.scheduling.framework.relations import Relation

_Count = TypeVar("_Count", int, int | None)
Key = tuple[str, str]
"""Namespace and name of a federated object."""
_SUCCESSFUL = (Outcome.SCHEDULED, Outcome.STICKY)
_LEVEL = 3
"""Of compression. The highest one saves a tenth of the bytes and takes three times as long."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CHUNK_BYTES_MAX = 256 << 20
"""Bytes of an expanded chunk. A larger one was not written by this product."""


class Header(msgspec.Struct, tag="h", omit_defaults=True):
    """The program that decided, and its options; the first entry of a segment."""

    version: str
    plugins: dict[str, str] = {}
    """The version of each installed plugin's distribution."""
    counts_cpu_and_memory: bool = True
    toleration_s: int = 300
    allows_annotations: bool = True
    as_kubeadmiral: bool = False


class WorldChange(msgspec.Struct, tag="w", omit_defaults=True):
    """A cluster, policy or other object that decisions depend on: whole, changed, or removed without both."""

    kind: str
    namespace: str
    name: str
    whole: dict[str, Any] | None = None
    patch: dict[str, Any] | None = None


class AssumedChange(msgspec.Struct, tag="a", omit_defaults=True):
    """Changes of assumed replicas: of a request, by a number, in clusters.

    A cluster is its place among the names in the entries of the segment so far; lists have distances between places.
    """

    changes: list[tuple[tuple[tuple[str, int], ...], list[tuple[int, list[int]]]]]
    names: list[str] = []
    is_whole: bool = False
    """Whether there were none before."""


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a decision. The digest also covers the order of clusters and all scores."""

    outcome: str
    reason: str
    unplaced: int = 0
    digest: str = ""
    placements: dict[str, int | None] = {}
    """Not in entries, which have the difference from the placement before."""


class QuotaUse(msgspec.Struct, omit_defaults=True):
    """The quotas of a namespace, and what the other workloads use of each resource.

    `present` is what counted for the workload itself, None in records of earlier versions, which computed it.
    """

    hard: list[tuple[str, dict[str, int | None]]]
    others: dict[str, int]
    present: dict[str, int] | None = None
    requests: dict[str, dict[str, int]] = {}


class Answer(msgspec.Struct, omit_defaults=True):
    """An answer of a remote plugin."""

    status: int
    body: str = ""
    error: str = ""


class Decided(msgspec.Struct, tag="d", omit_defaults=True):
    """A decision. `current` is the placement before it, None for that of the decision before it in the segment.

    `answers` are those of each exchange with remote plugins; None if they were too large to record.
    """

    key: Key
    at_us: int
    result: Result
    whole: dict[str, Any] | None = None
    patch: dict[str, Any] | None = None
    current: dict[str, int | None] | None = None
    placed: list[tuple[int | None, list[int]]] = []
    """Clusters by the number of replicas that they get, other than before, as in `AssumedChange`."""
    left: list[int] = []
    """Clusters that it leaves."""
    names: list[str] = []
    texts: list[str] = []
    """Parts of objects that others share; objects have the numbers of those in the segment so far."""
    is_unschedulable: bool = False
    can_place_more: bool = False
    is_plugin_back: bool = False
    homes: list[str] = []
    completes: bool = False
    away: list[str] = []
    relations: tuple[Relation, ...] = ()
    quota: QuotaUse | None = None
    answers: list[list[Answer]] | None = []


Entry = Header | WorldChange | AssumedChange | Decided
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a segment. Segments and chunks are numbered in the order of their writing."""

    segment: int
    number: int
    first_us: int
    last_us: int
    decisions: int
    content: bytes


def encode(entry: Entry) -> bytes:
    """Return an entry as a line."""
    return _encoder.encode(entry)


def compress(lines: Iterable[bytes]) -> bytes:
    """Return the content of a chunk."""
    return zlib.compress(b"\n".join(lines), _LEVEL)


def decides_in(chunk: Chunk, namespace: str) -> bool:
    """Return whether a chunk may have a decision about an object of the namespace; its entries are not decoded."""
    text = zlib.decompressobj().decompress(chunk.content, _CHUNK_BYTES_MAX)
    return b'"key":[' + orjson.dumps(namespace) + b"," in text


def read(chunks: Iterable[Chunk]) -> Iterator[Entry]:
    """Yield the entries of chunks in their order; ConfigurationError for what is damaged."""
    for chunk in chunks:
        try:
            expander = zlib.decompressobj()
            text = expander.decompress(chunk.content, _CHUNK_BYTES_MAX)
            if not expander.eof:
                raise ConfigurationError(f"a chunk of records expands to more than {_CHUNK_BYTES_MAX >> 20} MiB")
            for line in text.split(b"\n"):
                yield _decoder.decode(line)
        except (zlib.error, msgspec.DecodeError) as error:
            raise ConfigurationError(f"chunk {chunk.segment}/{chunk.number} of the records is damaged") from error


def restored(before: Object | None, whole: Object | None, patch: Object | None) -> Object:
    """Return an object of an entry, from the version before it."""
    if whole is not None:
        return whole
    if before is None:
        raise ConfigurationError("the records are incomplete: a difference has no object that it belongs to")
    restored: Object = apply_merge_patch(before, patch or {})
    return restored


def result_of(decision: Decision) -> Result:
    """Return the outcome of a decision as records have it."""
    scores = decision.scored.totals.scores if decision.scored is not None else None
    selected = [step.clusters for step in decision.selections]
    content = (
        decision.outcome,
        decision.reason,
        list(decision.placements),
        list(decision.placements.values()),
        decision.unplaced,
        decision.exceeded,
        scores,
        # Most steps keep all clusters, whose names are most of what is hashed.
        [None if at and selected[at - 1] == clusters else clusters for at, clusters in enumerate(selected)],
        decision.waiting,
    )
    digest = blake2b(orjson.dumps(content, default=list), digest_size=8).hexdigest()
    return Result(decision.outcome, decision.reason, decision.unplaced, digest, dict(decision.placements))


def placed_by(result: Result, current: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return the placement after a decision, as objects store it."""
    return dict(sorted(result.placements.items())) if result.placements else dict(current)


class ClusterPlaces:
    """Clusters, and texts about all of them, as numbers in the order of their first use in a segment."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self.names: list[str] = []
        self._told = 0
        self._numbers: dict[str, int] = {}
        self.texts: list[str] = []
        self._told_texts = 0

    def number_of(self, text: str) -> int:
        """Return the number of a text."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def untold_texts(self) -> list[str]:
        """Return the texts that were added since the last call, for an entry."""
        begin, self._told_texts = self._told_texts, len(self.texts)
        return self.texts[begin:]

    def untold(self) -> list[str]:
        """Return the names that were added since the last call, for an entry."""
        told, self._told = self._told, len(self.names)
        return self.names[told:]

    def distances(self, clusters: Sequence[str]) -> list[int]:
        """Return clusters as the distances between their sorted places, which compress well."""
        try:
            places = [self._places[name] for name in clusters]
        except KeyError:
            for name in clusters:
                if name not in self._places:
                    self._places[name] = len(self.names)
                    self.names.append(name)
            places = [self._places[name] for name in clusters]
        places.sort()
        return [place - before for before, place in zip((0, *places), places, strict=False)]

    def clusters(self, distances: Sequence[int]) -> list[str]:
        """Return the clusters of distances; ConfigurationError for unknown ones."""
        try:
            return list(map(self.names.__getitem__, itertools.accumulate(distances)))
        except IndexError:
            raise ConfigurationError("the records are damaged: a cluster has no name") from None

    def grouped(self, counts: Mapping[str, _Count]) -> list[tuple[_Count, list[int]]]:
        """Return clusters by their numbers."""
        if len(counts) == 1:  # as in most changes by reports
            ((name, only),) = counts.items()
            return [(only, self.distances((name,)))]
        groups = defaultdict[_Count, list[str]](list)
        for name, count in counts.items():
            groups[count].append(name)
        return [(count, self.distances(found)) for count, found in groups.items()]


def to_difference(entry: Decided, current: Mapping[str, int | None], places: ClusterPlaces) -> None:
    """Replace the placement of the result by its difference from the one before."""
    placements = entry.result.placements
    if placements:
        missing = object()
        changed: Mapping[str, int | None] = placements
        if current:
            changed = {name: count for name, count in placements.items() if current.get(name, missing) != count}
            entry.left = places.distances([name for name in current if name not in placements])
        entry.placed = places.grouped(changed)
        entry.result = structs.replace(entry.result, placements={})
    entry.names, entry.texts = places.untold(), places.untold_texts()


def from_difference(entry: Decided, current: Mapping[str, int | None], places: ClusterPlaces) -> None:
    """Restore the placement of the result."""
    places.names += entry.names
    places.texts += entry.texts
    if entry.result.outcome in _SUCCESSFUL:
        placements = {**current, **{name: count for count, each in entry.placed for name in places.clusters(each)}}
        for name in places.clusters(entry.left):
            placements.pop(name, None)
        entry.result = structs.replace(entry.result, placements=placements)


def to_us(at: datetime) -> int:
    """Return a time in microseconds."""
    return (at - _EPOCH) // _MICROSECOND


def from_us(at_us: int) -> datetime:
    """Return the time of an entry."""
    return _EPOCH + at_us * _MICROSECOND
