"""The store against a model that is obviously right: a list of all states. Hypothesis finds the shortest difference."""

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.generated import examples
from tests.support.stores import a_body, a_value

from federation.apimachinery.errors import KeyExists, KeyNotFound, RevisionCompacted, RevisionConflict
from federation.apiserver.store.interface import Entry, Event, EventType
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.options import StoreOptions

KEYS = st.sampled_from(["/a", "/a/", "/a/1", "/a/10", "/a/2", "/ab/1", "/b/1", "/b/é", "/b/\U0010ffff"])
PREFIXES = st.sampled_from(["", "/", "/a", "/a/", "/a/1", "/b/", "/b/\U0010ffff", "/c"])


class StoreModel(RuleBasedStateMachine):
    """Every operation on a MemoryStore and on the model."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.states: list[dict[str, Entry]] = [{}]
        self.events: list[Event] = []
        self.compacted = 0
        self.watches: list[tuple[Any, str, int, list[Event]]] = []

    @initialize(history=st.sampled_from([5, 50_000]))
    def start(self, history: int) -> None:
        self.history = history
        self.store = MemoryStore(StoreOptions(history_rows_max=history))

    def run_(self, awaitable: Any) -> Any:
        return self.loop.run_until_complete(awaitable)

    @property
    def state(self) -> dict[str, Entry]:
        return self.states[-1]

    def committed(self, event: Event, entry: Entry | None) -> None:
        state = dict(self.state)
        state.pop(event.key, None)
        if entry is not None:
            state[event.key] = entry
        self.states.append(state)
        self.events.append(event)
        self.compacted = max(self.compacted, len(self.events) - self.history)

    @rule(key=KEYS, text=st.text("xyz", max_size=3))
    def create(self, key: str, text: str) -> None:
        if key in self.state:
            with pytest.raises(KeyExists):
                self.run_(self.store.create(key, a_body(text)))
            return
        entry = self.run_(self.store.create(key, a_body(text)))
        revision = len(self.states)
        assert entry == Entry(key, revision, revision, a_value(revision, text))
        self.committed(Event(revision, key, EventType.CREATED, entry.value, None), entry)

    @rule(key=KEYS, text=st.text("xyz", max_size=3), lag=st.sampled_from([0, 0, 0, 1]), is_delete=st.booleans())
    def change(self, key: str, text: str, lag: int, is_delete: bool) -> None:
        current = self.state.get(key)
        call = self.store.delete if is_delete else self.store.update
        if current is None or lag:
            with pytest.raises(KeyNotFound if current is None else RevisionConflict):
                self.run_(call(key, a_body(text), current.revision - lag if current else 1))
            return
        entry = self.run_(call(key, a_body(text), current.revision))
        revision = len(self.states)
        assert entry == Entry(key, revision, current.create_revision, a_value(revision, text))
        kind = EventType.DELETED if is_delete else EventType.UPDATED
        self.committed(Event(revision, key, kind, entry.value, current.value), None if is_delete else entry)

    @rule(prefix=PREFIXES, back=st.integers(0, 12), limit=st.integers(0, 4))
    def list_in_pages(self, prefix: str, back: int, limit: int) -> None:
        revision = len(self.events) - back
        if revision <= 0:  # 0 asks for the newest
            revision = len(self.events)
        if revision < self.compacted:
            with pytest.raises(RevisionCompacted):
                self.run_(self.store.list(prefix, revision=revision))
            return
        expected = [entry for key, entry in sorted(self.states[revision].items()) if key.startswith(prefix)]
        found: list[Entry] = []
        from_key = ""
        while True:
            page = self.run_(self.store.list(prefix, limit=limit, from_key=from_key, revision=revision))
            found += page.entries
            assert page.remaining == len(expected) - len(found)
            if not page.next_key:
                break
            from_key = page.next_key
        assert found == expected

    @rule(prefix=PREFIXES, back=st.integers(0, 12))
    def watch(self, prefix: str, back: int) -> None:
        since = max(0, len(self.events) - back)
        watch = self.store.watch(prefix, since)
        if since < self.compacted:
            with pytest.raises(RevisionCompacted):
                self.run_(anext(watch))
        else:
            self.watches.append((watch, prefix, since, []))

    @rule()
    def read_watches(self) -> None:
        still = []
        for watch, prefix, since, seen in self.watches:
            expected = [e for e in self.events if e.revision > since and e.key.startswith(prefix)]
            # A watch that never began to read, and whose start was forgotten meanwhile, begins with an error.
            if since < self.compacted and not seen:
                self.run_(watch.aclose())
                continue
            if len(seen) < len(expected):
                seen.extend(self.run_(anext(watch)))
            assert seen == expected
            still.append((watch, prefix, since, seen))
        self.watches = still

    @rule(back=st.integers(-2, 8))
    def compact(self, back: int) -> None:
        revision = len(self.events) - back
        self.run_(self.store.compact(revision))
        self.compacted = max(self.compacted, min(revision, len(self.events)))

    @invariant()
    def newest_state_is_right(self) -> None:
        if hasattr(self, "store"):
            assert self.run_(self.store.revision()) == len(self.events)
            for key in ("/a", "/a/1", "/b/é"):
                assert self.run_(self.store.get(key)) == self.state.get(key)

    def teardown(self) -> None:
        for watch, *_ in self.watches:
            self.run_(watch.aclose())
        self.loop.close()


TestStoreModel = StoreModel.TestCase
TestStoreModel.settings = settings(examples(100), stateful_step_count=40)
