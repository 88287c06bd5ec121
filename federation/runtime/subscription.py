"""A controller's subscription to federated objects: its triggers, and the events that it does not get.

Events of the controller's own writes are dropped, and those of objects that are not its turn yet are passed on as one
when it is. `federatedobjects.py` makes the subscriptions and reports the writes.

Decision: docs/decisions/0096-a-reconcile-takes-what-was-delayed.md
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object
from federation.client.client import Objects
from federation.runtime.controller import Key, key_of
from federation.runtime.handlers import Handler

_PROGRESS = frozenset((names.PENDING_CONTROLLERS, names.OVERRIDE_POLICIES))
"""Annotations that wake no controller: `is_due` and `is_pending` handle one, new overrides come with the other."""


_UID, _GENERATION, _TEMPLATE, _ENTRIES, _PLACED, _DELETION, _LABELS, _FINALIZERS, _OWNERS, _ANNOTATIONS = (
    1 << bit for bit in range(10)
)


class Difference(NamedTuple):
    """The changes of an update: bits of parts, and the names of annotations."""

    parts: int
    annotations: frozenset[str]


def difference(old: Object, new: Object) -> Difference:
    """Return what differs between two states of a federated object, beside its status."""
    before, after = old["metadata"], new["metadata"]
    parts = _UID if before.get("uid") != after.get("uid") else 0
    if before.get("generation") != after.get("generation") or "generation" not in after:
        parts |= _GENERATION
    was, now = old.get("spec") or {}, new.get("spec") or {}
    if was.get("template") != now.get("template"):
        parts |= _TEMPLATE
    if was.get("placements") != now.get("placements") or was.get("overrides") != now.get("overrides"):
        parts |= _ENTRIES
        if _is_placed(old) != _is_placed(new):
            parts |= _PLACED
    for bit, name in _FIELDS:
        if before.get(name) != after.get(name):
            parts |= bit
    held, kept = before.get("annotations") or {}, after.get("annotations") or {}
    if held == kept:
        return Difference(parts, frozenset())
    annotations = frozenset({name for name in held.keys() | kept.keys() if held.get(name) != kept.get(name)})
    return Difference(parts if annotations <= _PROGRESS else parts | _ANNOTATIONS, annotations)


_FIELDS = (
    (_DELETION, "deletionTimestamp"),
    (_LABELS, "labels"),
    (_FINALIZERS, "finalizers"),
    (_OWNERS, "ownerReferences"),
)


class Differences:
    """The difference of the last update, which two dozen subscriptions ask for one after another."""

    def __init__(self) -> None:
        self._old: Object | None = None
        self._new: Object | None = None
        self._last = Difference(0, frozenset())

    def between(self, old: Object, new: Object) -> Difference:
        """Return `difference(old, new)`."""
        if old is not self._old or new is not self._new:
            self._old, self._new, self._last = old, new, difference(old, new)
        return self._last


@dataclass(frozen=True, slots=True)
class Triggers:
    """The changes of a federated object that a controller reacts to. A removal and a new uid always matter."""

    added: bool = True
    generation: bool = True
    template: bool = False
    """`spec.template`, for a controller that does not react to every new generation."""
    entries_of: str = ""
    """The placements and overrides of this controller, which a user may have edited."""
    placed: bool = False
    """Whether any controller has placed the object."""
    labels: bool = False
    annotations: bool | AbstractSet[str] = False
    """Every annotation, none, or those with these names."""
    finalizers: bool = False
    owner_references: bool = False
    deletion: bool = True
    """The start of a deletion. Without it, an object that is being deleted is ignored until it is removed."""
    status: Callable[[Object], Any] | None = None
    """Returns the part of the object's status that matters; None ignores the status."""
    is_due: Callable[[Object], bool] | None = None
    """For a controller of the pipeline: returns whether it may act on the object now. Changes of an object that is not
    due are passed on as one event when it becomes due. An object that is being deleted is always due."""
    is_pending: Callable[[Object], bool] | None = None
    """Returns whether the controller is at the head of `pending-controllers`. Getting there counts as a change."""

    mask: int = field(init=False, repr=False, compare=False)
    """The parts of an object of which any change matters."""
    is_plain: bool = field(init=False, repr=False, compare=False)
    """Whether the mask says it all about a change."""
    is_staged: bool = field(init=False, repr=False, compare=False)
    """Whether the controller has to wait for its turn."""

    def __post_init__(self) -> None:
        chosen = {
            _GENERATION: self.generation,
            _TEMPLATE: self.template,
            _PLACED: self.placed,
            _DELETION: self.deletion,
            _LABELS: self.labels,
            _FINALIZERS: self.finalizers,
            _OWNERS: self.owner_references,
            _ANNOTATIONS: self.annotations is True,
        }
        is_plain = isinstance(self.annotations, bool) and not self.entries_of and self.status is None
        object.__setattr__(self, "mask", _UID | sum(part for part, is_chosen in chosen.items() if is_chosen))
        object.__setattr__(self, "is_plain", is_plain)
        object.__setattr__(self, "is_staged", self.is_due is not None or self.is_pending is not None)

    def concern(self, old: Object | None, new: Object) -> bool:
        """Return whether the change matters to the controller, whether or not the object is due."""
        if self.is_pending is not None and self.is_pending(new) and (old is None or not self.is_pending(old)):
            return True
        return self.added if old is None else self.matters(old, new, difference(old, new))

    def is_due_now(self, federated: Object) -> bool:
        """Return whether the controller may act on the object now."""
        return self.is_due is None or bool(federated["metadata"].get("deletionTimestamp")) or self.is_due(federated)

    def matters(self, old: Object, new: Object, found: Difference) -> bool:
        """Return whether a difference matters to the controller."""
        if found.parts & self.mask:
            return True
        return not self.is_plain and bool(
            (
                self.entries_of
                and found.parts & _ENTRIES
                and _entries(old, self.entries_of) != _entries(new, self.entries_of)
            )
            or (
                found.annotations
                and not isinstance(self.annotations, bool)
                and not self.annotations.isdisjoint(found.annotations)
            )
            or (self.status is not None and self.status(old) != self.status(new))
        )


def _is_placed(federated: Object) -> bool:
    return any(entry.get("placement") for entry in (federated.get("spec") or {}).get("placements") or ())


def _entries(federated: Object, controller: str) -> Objects:
    spec = federated.get("spec") or {}
    entries = chain(spec.get("placements") or (), spec.get("overrides") or ())
    return [entry for entry in entries if entry.get("controller") == controller]


def _key_of_event(old: Object | None, new: Object | None) -> Key:
    return key_of(new if new is not None else old or {})


class _Own(NamedTuple):
    """A write of the controller that the watch has not delivered yet."""

    base: int
    """The revision that it was made for."""
    is_complete: bool
    """Whether it also did what was deferred: the object was not due before it, and is due with it."""


@dataclass(slots=True)
class _Held:
    """The writes of one object that are open, and the events that arrived since the first of them began."""

    writes: int = 0
    is_deferred: bool = False
    """Whether the controller has deferred the object since then."""
    events: list[tuple[Object | None, Object | None]] = field(default_factory=list)


class Subscription:
    """One controller's handler with its triggers, and the controller's writes that the watch has not delivered yet.

    The event of the controller's own write is dropped if it contains no other change: its old state is the one that the
    patch was made for, its new state the one that the patch returned. Events that arrive during a write are held until
    its response, which identifies the write's own event: within one process the watch is often faster. Writes of one
    object overlap where the controller completes the patch of another one (`complete_writes`); then events are held
    until the last response.
    """

    def __init__(self, handler: Handler, triggers: Triggers | None, differences: Differences | None = None) -> None:
        self._handler = handler
        self._differences = differences or Differences()
        self._triggers = triggers
        self._deferred: set[Key] = set()
        self._written: dict[Key, dict[int, _Own]] = {}
        self._held: dict[Key, _Held] = {}

    def handle(self, old: Object | None, new: Object | None) -> None:
        """Call the handler if the event matters."""
        if self._held or self._written:  # rarely: two dozen subscriptions get each event
            key = _key_of_event(old, new)
            if (held := self._held.get(key)) is not None:
                held.events.append((old, new))
                return
            if (own := self._take_own_write(key, old, new)) is not None:
                if own.is_complete:
                    self._deferred.discard(key)
                return
        if self._is_admitted(old, new):
            self._handler(old, new)

    def _is_admitted(self, old: Object | None, new: Object | None) -> bool:
        triggers = self._triggers
        if triggers is None:
            return True
        if new is None:
            self._deferred.discard(_key_of_event(old, new))
            return True
        if not triggers.deletion and new["metadata"].get("deletionTimestamp"):
            return False
        if old is not None and not triggers.is_staged and not self._deferred:
            return triggers.matters(old, new, self._differences.between(old, new))
        is_concerned = triggers.concern(old, new)
        if not triggers.is_due_now(new):
            if is_concerned:
                self._deferred.add(key_of(new))
            return False
        if self._deferred and (key := key_of(new)) in self._deferred:
            self._deferred.remove(key)
            return True
        return is_concerned

    def defer(self, key: Key) -> None:
        """Pass on the next event with which the object is due, even if it contains no other change."""
        self._deferred.add(key)
        if (held := self._held.get(key)) is not None:
            held.is_deferred = True

    def begin_write(self, key: Key) -> None:
        """Hold the object's events until every write of it has ended."""
        self._held.setdefault(key, _Held()).writes += 1

    def end_write(self, key: Key, base: Object, written: Object | None) -> None:
        """End a write. The last one passes on the held events, except events of successful writes."""
        held = self._held[key]
        if written is not None and revision_of(written) > revision_of(base):
            is_complete = not held.is_deferred and not self._is_due(base) and self._is_due(written)
            self._written.setdefault(key, {})[revision_of(written)] = _Own(revision_of(base), is_complete)
        held.writes -= 1
        if held.writes:
            return
        del self._held[key]
        for old, new in held.events:
            self.handle(old, new)

    def _is_due(self, federated: Object) -> bool:
        return self._triggers is None or self._triggers.is_due_now(federated)

    def _take_own_write(self, key: Key, old: Object | None, new: Object | None) -> _Own | None:
        """Return the controller's write if the event shows nothing else, and forget it and those before it."""
        writes = self._written.get(key)
        if writes is None:
            return None
        revision = revision_of(new)
        own = writes.get(revision)
        later = {written: each for written, each in writes.items() if new is not None and written > revision}
        if later:
            self._written[key] = later
        else:
            del self._written[key]
        return own if own is not None and own.base == revision_of(old) else None
