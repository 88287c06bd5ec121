"""Concurrent writers, watchers and lists on a few objects of one or more registries, checked against the store's log.

`Writer` increments a counter in an object with each acknowledged write. `Watching` follows a collection, stops anywhere
(also within a batch) and resumes from its last resourceVersion. `Log` records all changes of the store:
`Log.expected` returns the events that a watch must deliver, `Log.state_at` the objects that a list must return.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from federation.apimachinery.errors import AlreadyExists, Conflict, Expired, Invalid, NotFound
from federation.apimachinery.resources import Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.interface import Event, EventType
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions, WriteOptions
from tests.support.stores import Recorder

NAMESPACE = "default"
PREFIX = f"/core/configmaps/{NAMESPACE}/"
STABLE = [f"stable-{number:02}" for number in range(14)]
VOLATILE = [f"volatile-{number}" for number in range(6)]
"""Objects that are also deleted and recreated. They are never applied, because an apply could recreate them."""
_MERGE, _JSON, _APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
WatchEvent = tuple[str, str, int]
"""One event of a watch: type, name, resourceVersion."""


def config_maps(registry: Registry) -> KindInfo:
    return registry.kinds.lookup("", "v1", "configmaps")


def a_counter(name: str, count: int) -> Object:
    """Return a counter object; its label is odd or even, so that every write changes the label selections."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": _labels(count)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"count": str(count)}}


def _labels(count: int) -> dict[str, str]:
    return {"side": "odd" if count % 2 else "even"}


class Writer:
    """Writes in sequence, with retries after conflicts; `counted` has the acknowledged writes by object."""

    def __init__(self, registry: Registry, number: int) -> None:
        self._registry = registry
        self._info = config_maps(registry)
        self._random = random.Random(number)
        self._options = WriteOptions(field_manager=f"writer-{number}")
        self._field = f"writer-{number}"
        self.counted: Counter[str] = Counter()
        self.applied: dict[str, str] = {}
        """The last acknowledged value of this writer's own field, by object."""
        self.retries = 0

    async def run(self, updates: int) -> None:
        """Make `updates` acknowledged writes."""
        for number in range(updates):
            name = self._random.choice((*STABLE, *VOLATILE))
            ways = [self._update] * 6 + [self._merge] * 2 + [self._json]
            ways += [self._replace] if name in VOLATILE else [self._apply]
            await self._until_done(self._random.choice(ways), name, str(number))

    async def _until_done(self, way: Callable[[str, str], Any], name: str, text: str) -> None:
        while True:
            try:
                await way(name, text)
            except (Conflict, NotFound, Invalid):  # Invalid: the `test` of a JSON patch did not hold any more
                self.retries += 1
                await asyncio.sleep(0)
            else:
                return

    async def _get(self, name: str) -> tuple[Object, int]:
        obj: Object = orjson.loads(await self._registry.get(self._info, NAMESPACE, name))
        return obj, int(obj["data"]["count"]) + 1

    def _acknowledged(self, name: str, value: bytes, count: int) -> None:
        assert orjson.loads(value)["data"]["count"] == str(count), (
            "an acknowledged write does not hold what was written"
        )
        self.counted[name] += 1

    async def _update(self, name: str, text: str) -> None:
        del text
        obj, count = await self._get(name)
        obj["data"]["count"], obj["metadata"]["labels"] = str(count), _labels(count)
        value, _ = await self._registry.update(self._info, NAMESPACE, name, obj, self._options)
        self._acknowledged(name, value, count)

    async def _merge(self, name: str, text: str) -> None:
        del text
        obj, count = await self._get(name)
        metadata = {"resourceVersion": obj["metadata"]["resourceVersion"], "labels": _labels(count)}
        await self._patch(name, _MERGE, {"metadata": metadata, "data": {"count": str(count)}}, count)

    async def _json(self, name: str, text: str) -> None:
        """Change without a resourceVersion: only the test in the patch guards the count."""
        del text
        _, count = await self._get(name)
        steps = [
            {"op": "test", "path": "/data/count", "value": str(count - 1)},
            {"op": "replace", "path": "/data/count", "value": str(count)},
            {"op": "replace", "path": "/metadata/labels", "value": _labels(count)},
        ]
        await self._patch(name, _JSON, steps, count)

    async def _patch(self, name: str, type_: str, patch: Any, count: int) -> None:
        value, _ = await self._registry.patch(self._info, NAMESPACE, name, type_, orjson.dumps(patch), self._options)
        self._acknowledged(name, value, count)

    async def _apply(self, name: str, text: str) -> None:
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {self._field: text}}
        value, created = await self._registry.patch(
            self._info, NAMESPACE, name, _APPLY, orjson.dumps(config), self._options
        )
        assert not created
        assert orjson.loads(value)["data"][self._field] == text
        self.applied[name] = text

    async def _replace(self, name: str, text: str) -> None:
        """Delete the object at its current revision and recreate it with the next count."""
        del text
        obj, count = await self._get(name)
        metadata = obj["metadata"]
        options = DeleteOptions(uid=metadata["uid"], resource_version=metadata["resourceVersion"])
        await self._registry.delete(self._info, NAMESPACE, name, options)
        try:
            value = await self._registry.create(self._info, NAMESPACE, a_counter(name, count), self._options)
        except AlreadyExists as error:
            raise AssertionError(f"somebody else made {name}") from error
        self._acknowledged(name, value, count)


@dataclass
class Chain:
    """The events of one watch without a relist in between, from `start` on."""

    start: int
    state: dict[str, int] | None = None
    """The objects of the list or of the initial events at `start`; None for a watch without either."""
    events: list[WatchEvent] = field(default_factory=list)
    reached: int = 0


class Watching:
    """A watcher that stops and resumes. `chains` has one entry, and another for every relist."""

    def __init__(self, registry: Registry, name: str, start: int, options: ListOptions) -> None:
        self.name = name
        self.options = options
        self.chains = [Chain(start, reached=start)]
        self.resumed = 0
        self._registry = registry
        self._info = config_maps(registry)
        self._random = random.Random(name)

    async def run(self) -> None:
        """Watch until cancelled, in pieces of random length."""
        if self.options.send_initial_events:
            await self._stream_list()
        while True:
            try:
                # Ends after some events or after some time, whichever comes first.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._random.choice((0.005, 0.05, 0.3))):
                        await self.follow(self._random.choice((3, 30, 300)))
            except Expired:
                if self.options.send_initial_events:
                    await self._stream_list()
                else:
                    await self._list()
            self.resumed += 1
            for _ in range(self._random.randrange(20)):
                await asyncio.sleep(0)

    async def follow(self, events_max: int) -> None:
        """Receive at most `events_max` events and bookmarks, then stop, possibly within a batch."""
        chain = self.chains[-1]
        options = ListOptions(
            label_selector=self.options.label_selector,
            field_selector=self.options.field_selector,
            allow_watch_bookmarks=self.options.allow_watch_bookmarks,
            resource_version=str(chain.reached),
        )
        async with contextlib.aclosing(self._registry.watch(self._info, NAMESPACE, options)) as batches:
            async for batch in batches:
                for type_, value in batch:
                    metadata = orjson.loads(value)["metadata"]
                    revision = int(metadata["resourceVersion"])
                    assert revision > chain.reached or (type_ == "BOOKMARK" and revision == chain.reached), (
                        self.name,
                        "goes back",
                    )
                    chain.reached = revision
                    if type_ != "BOOKMARK":
                        chain.events.append((type_, metadata["name"], revision))
                    events_max -= 1
                    if not events_max:
                        return

    async def _list(self) -> None:
        options = ListOptions(label_selector=self.options.label_selector, field_selector=self.options.field_selector)
        found = await self._registry.list(self._info, NAMESPACE, options)
        self.chains.append(Chain(found.resource_version, _names(found.items), reached=found.resource_version))

    async def _stream_list(self) -> None:
        """List with a watch: the state as ADDED events up to the initial-events-end bookmark."""
        values: list[bytes] = []
        async with contextlib.aclosing(self._registry.watch(self._info, NAMESPACE, self.options)) as batches:
            async for batch in batches:
                for type_, value in batch:
                    if type_ == "BOOKMARK":
                        metadata = orjson.loads(value)["metadata"]
                        assert metadata["annotations"]["k8s.io/initial-events-end"] == "true"
                        revision = int(metadata["resourceVersion"])
                        self.chains.append(Chain(revision, _names(values), reached=revision))
                        return
                    assert type_ == "ADDED"
                    values.append(value)


def _names(values: list[bytes]) -> dict[str, int]:
    found = [orjson.loads(value)["metadata"] for value in values]
    return {metadata["name"]: int(metadata["resourceVersion"]) for metadata in found}


class Lister:
    """Lists in small pages during writes; `lists` are (resourceVersion, objects of all pages)."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._info = config_maps(registry)
        self.lists: list[tuple[int, dict[str, int]]] = []
        self.expired = 0

    async def run(self) -> None:
        """List repeatedly until cancelled."""
        while True:
            with contextlib.suppress(Expired):
                self.lists.append(await self.pages(limit=3))
                continue
            self.expired += 1

    async def pages(self, limit: int) -> tuple[int, dict[str, int]]:
        """Return a list's revision and all its pages."""
        values: list[bytes] = []
        token, revision = "", 0
        while True:
            found = await self._registry.list(self._info, NAMESPACE, ListOptions(limit=limit, continue_token=token))
            assert revision in (0, found.resource_version), "the pages of a list are of different revisions"
            revision, token = found.resource_version, found.continue_token
            values += found.items
            if not token:
                names = _names(values)
                assert len(names) == len(values), "a list shows an object twice"
                return revision, names
            await asyncio.sleep(0.001)  # let others write between pages


class Log:
    """All changes under the prefix, in order, from a recorder of the whole store without a gap."""

    def __init__(self, recorder: Recorder) -> None:
        revisions = [event.revision for event in recorder.events]
        assert revisions == list(range(revisions[0], revisions[0] + len(revisions))), "the log has gaps"
        self.events = [event for event in recorder.events if event.key.startswith(PREFIX)]

    def expected(self, options: ListOptions, start: int, end: int) -> list[WatchEvent]:
        """Return the events that a watch with these selectors must deliver for the changes in (start, end]."""
        events = []
        for event in self.events:
            if start < event.revision <= end and (type_ := _type_for(options, event)):
                events.append((type_, event.key.removeprefix(PREFIX), event.revision))
        return events

    def state_at(self, revision: int, options: ListOptions | None = None) -> dict[str, int]:
        """Return the objects of a list at a revision: names and resourceVersions."""
        state: dict[str, int] = {}
        for event in self.events:
            if event.revision > revision:
                break
            name = event.key.removeprefix(PREFIX)
            state.pop(name, None)
            if event.type is not EventType.DELETED and (options is None or _selects(options, name, event.value)):
                state[name] = event.revision
        return state


def _type_for(options: ListOptions, event: Event) -> str:
    """Return the type of a change's event in a watch; "" when there is none."""
    name = event.key.removeprefix(PREFIX)
    was_in = event.previous is not None and _selects(options, name, event.previous)
    is_in = event.type is not EventType.DELETED and _selects(options, name, event.value)
    return {(False, True): "ADDED", (True, True): "MODIFIED", (True, False): "DELETED"}.get((was_in, is_in), "")


def _selects(options: ListOptions, name: str, value: bytes) -> bool:
    """Evaluate the selectors of these tests: `side=…` and `metadata.name=…`."""
    if options.field_selector and options.field_selector != f"metadata.name={name}":
        return False
    if not options.label_selector:
        return True
    _, _, side = options.label_selector.partition("=")
    return b'"side":"%b"' % side.encode() in value
