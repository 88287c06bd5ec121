"""Print a list of objects, and with `--watch` each object again when its row changes."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ClusterError, Expired
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client, ObjectList, WatchEventType
from federation.terminal.plaintext import print_document, to_name
from federation.terminal.printing import print_rows

_RETRY_S = 1.0
"""Time between a watch that ended and the next list."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A kind of object as a table."""

    resource: Resource
    headings: str
    folded: str
    empty: str
    to_row: Callable[[Object, datetime], list[str]]
    label_selector: str = ""


async def read_all(client: Client, listing: Listing) -> ObjectList:
    """Return the objects of the listing by name."""
    found = await client.list(listing.resource, label_selector=listing.label_selector)
    return ObjectList(sorted(found.items, key=lambda item: str(item["metadata"]["name"])), found.resource_version)


async def print_listing(client: Client, listing: Listing, output: str, *, is_watched: bool) -> Sequence[Object]:
    """Print the objects and return them; with `is_watched`, print changes until cancelled."""
    found = await read_all(client, listing)
    clock = SystemClock()
    started = clock.now()
    rows = [listing.to_row(item, started) for item in found.items]
    if not is_watched or output != "yaml":
        print_rows(found.items, output, listing.empty, rows, listing.headings, listing.folded)
    if is_watched:
        columns = zip(listing.headings.split(", "), *rows, strict=False)
        widths = [max(map(len, column)) for column in columns]
        await _Watcher(listing, output, widths, started, found).run(client)
    return found.items


class _Watcher:
    """The lines printed so far, so that an event without a visible change prints nothing.

    Rows are compared as they were at the start: an age alone is no change.
    """

    def __init__(
        self, listing: Listing, output: str, widths: Sequence[int], started: datetime, found: ObjectList
    ) -> None:
        self._listing, self._output, self._widths, self._started = listing, output, widths, started
        self._printed: dict[str, list[str]] = {}
        self._version = found.resource_version
        for item in found.items:
            self._is_news(item)

    async def run(self, client: Client) -> None:
        """Watch until cancelled; after a watch that ended, list again, and print what changed meanwhile."""
        while True:
            try:
                await self._watch(client)
            except (Expired, ClusterError):
                self._version = ""
            await asyncio.sleep(_RETRY_S)
            if not self._version:
                await self._relist(client)

    async def _watch(self, client: Client) -> None:
        listing = self._listing
        stream = client.watch(listing.resource, resource_version=self._version, label_selector=listing.label_selector)
        async with aclosing(stream) as batches:
            async for batch in batches:
                for event in batch:
                    self._version = str(event.object["metadata"]["resourceVersion"])
                    if event.type is WatchEventType.DELETED:
                        self._forget(event.object["metadata"]["name"])
                    elif event.type is not WatchEventType.BOOKMARK:
                        self._print({**_typed(listing.resource), **event.object})

    async def _relist(self, client: Client) -> None:
        try:
            found = await read_all(client, self._listing)
        except ClusterError:
            return
        self._version = found.resource_version
        for name in self._printed.keys() - {item["metadata"]["name"] for item in found.items}:
            self._forget(name)
        for item in found.items:
            self._print(item)

    def _forget(self, name: str) -> None:
        if self._printed.pop(name, None) is not None and self._output in ("table", "wide"):
            print(f"{name}  deleted", flush=True)

    def _is_news(self, item: Object) -> bool:
        name, row = item["metadata"]["name"], self._listing.to_row(item, self._started)
        is_same = self._printed.get(name) == row
        self._printed[name] = row
        return not is_same

    def _print(self, item: Object) -> None:
        if not self._is_news(item):
            return
        if self._output in ("json", "yaml"):
            print_document(item, self._output)
        elif self._output == "name":
            print(to_name(item))
        else:
            cells = self._listing.to_row(item, SystemClock().now())
            widths = [*self._widths, *([0] * len(cells))]
            print("  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)).rstrip())


def _typed(resource: Resource) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind}
