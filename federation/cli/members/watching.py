"""`fedctl get --watch`: the objects of all members, and each change as it happens, until Ctrl-C.

Each member is watched on its own, from the revision of its list. A watch that ends, or a member that does not answer,
is tried again with a new list; what was printed before is not printed again.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any
from urllib.parse import urlencode

from federation.api import names
from federation.apimachinery.errors import ApiError, ClusterError, Expired
from federation.apimachinery.resources import Object, Resource
from federation.cli.members import tables
from federation.cli.members.access import JSON, Member
from federation.cli.members.fanout import describe_problem, print_problems
from federation.cli.members.lookup import Scope, target_of
from federation.client.client import WatchEventType
from federation.client.watchdecoder import LineSplitter, to_event
from federation.terminal.plaintext import print_columns, print_document, to_name

_RETRY_S = 1.0
_IDLE_S = 180.0
"""A watch ends after this long without a byte; servers send a bookmark about once a minute."""
_LINE_BYTES_MAX = 8 * 1024 * 1024


async def watch(members: Sequence[Member], resource: Resource, scope: Scope, name: str, output: str) -> None:
    """Print the objects, then their changes, until cancelled."""
    screen = _Screen(resource, scope, output)
    watchers = [_Watcher(member, resource, scope, name, screen) for member in members]
    await asyncio.gather(*(watcher.list() for watcher in watchers))
    screen.begin()
    async with asyncio.TaskGroup() as group:
        for watcher in watchers:
            group.create_task(watcher.run())


class _Screen:
    """The output that all watchers share: the first lists together, as one table, then line by line."""

    def __init__(self, resource: Resource, scope: Scope, output: str) -> None:
        self.is_table = output in ("table", "wide")
        self.is_wide = output == "wide"
        self._resource, self._output = resource, output
        self._has_namespace = resource.namespaced and not scope.namespace
        self._first: list[tables.Row] = []
        self._headings: list[str] = []
        self._widths: Sequence[int] = ()
        self._has_begun = False

    def begin(self) -> None:
        """Print the rows of the first lists as a table."""
        self._has_begun = True
        self._first.sort(key=lambda row: row.cluster)
        self._headings = tables.headings_of(self._first)
        if self._first:
            self._print_table(self._first)

    def show(self, cluster: str, shown: Object, columns: Sequence[tuple[int, str]]) -> None:
        """Print an object or the rows of a Table."""
        if not self.is_table:
            self._show_object(cluster, shown)
            return
        rows = tables.to_rows(cluster, shown, columns)
        if not self._has_begun:
            self._first += rows
        elif not self._headings:
            self._headings = tables.headings_of(rows)
            self._print_table(rows)
        else:
            for line in tables.to_lines(rows, self._headings, has_namespace=self._has_namespace):
                padded = (f"{cell:<{width}}" for cell, width in zip(line, self._widths, strict=True))
                print("  ".join(padded).rstrip(), flush=True)

    def show_deleted(self, cluster: str, changed: Object) -> None:
        """Say that an object is gone; documents and names have no form for that."""
        if self.is_table:
            metadata = _metadata_of(changed)
            where = [metadata.get("namespace", "")] if self._has_namespace else []
            print("  ".join([cluster, *where, str(metadata.get("name")), "deleted"]), flush=True)

    def _print_table(self, rows: Sequence[tables.Row]) -> None:
        headings = ["CLUSTER", *(["NAMESPACE"] if self._has_namespace else []), *self._headings]
        self._widths = print_columns(headings, tables.to_lines(rows, self._headings, has_namespace=self._has_namespace))
        sys.stdout.flush()

    def _show_object(self, cluster: str, obj: Object) -> None:
        item = tables.with_cluster(
            cluster, {"apiVersion": self._resource.api_version, "kind": self._resource.kind, **obj}
        )
        if self._output == "name":
            print(item["metadata"]["annotations"][names.MEMBER_CLUSTER], to_name(item))
        else:
            print("---\n" if self._output == "yaml" else "", end="")
            print_document(item, self._output)
        sys.stdout.flush()


class _Watcher:
    """Follows one member."""

    def __init__(self, member: Member, resource: Resource, scope: Scope, name: str, screen: _Screen) -> None:
        self._member, self._resource, self._scope, self._screen = member, resource, scope, screen
        self._query = {"labelSelector": scope.selector, "fieldSelector": f"metadata.name={name}" if name else ""}
        self._columns: Sequence[tuple[int, str]] = ()
        self._version = ""
        self._printed: dict[str, str] = {}
        self._last_problem = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            if not self._version:
                await self.list()
            if self._version:
                await self._follow()
            await asyncio.sleep(_RETRY_S)

    async def list(self) -> None:
        """Print what the member has and was not printed before; report a failure."""
        try:
            answer = await self._member.read(self._target(), tables.ACCEPT if self._screen.is_table else JSON)
        except (ApiError, ClusterError) as error:
            self._report(error)
            return
        self._columns = tables.columns_of(answer, is_wide=self._screen.is_wide)
        self._version = str((answer.get("metadata") or {}).get("resourceVersion") or "")
        self._last_problem = ""
        self._show(answer)

    async def _follow(self) -> None:
        """Print changes until the watch ends."""
        try:
            async for kind, obj in self._events():
                self._version = _version_of(obj) or self._version
                if kind is WatchEventType.DELETED:
                    self._screen.show_deleted(self._member.name, obj)
                elif kind is not WatchEventType.BOOKMARK:
                    self._show(obj)
        except (ApiError, ClusterError) as error:
            self._version = ""
            if not isinstance(error, Expired):
                self._report(error)

    async def _events(self) -> AsyncIterator[tuple[WatchEventType, Any]]:
        accept = tables.ACCEPT if self._screen.is_table else JSON
        target = self._target(watch="true", allowWatchBookmarks="true", resourceVersion=self._version)
        splitter = LineSplitter(_LINE_BYTES_MAX)
        async with self._member.open(target, accept, idle_s=_IDLE_S) as body:
            async for piece in body:
                for line in splitter.feed(piece):
                    event = to_event(line)
                    if isinstance(event, ApiError):
                        raise event
                    yield event.type, event.object

    def _target(self, **more: str) -> str:
        query = urlencode({key: value for key, value in {**self._query, **more}.items() if value})
        return target_of(self._resource, self._scope.namespace, query=query)

    def _show(self, answer: Object) -> None:
        """Print the rows or items of an answer that are new since they were printed."""
        if not self._screen.is_table:
            for item in answer.get("items") or ([answer] if "metadata" in answer and "items" not in answer else []):
                if self._is_news(item):
                    self._screen.show(self._member.name, item, ())
            return
        news = [row for row in answer.get("rows") or () if self._is_news(row.get("object") or {})]
        self._screen.show(self._member.name, {"rows": news}, self._columns)

    def _is_news(self, obj: Object) -> bool:
        metadata = obj.get("metadata") or {}
        version, key = str(metadata.get("resourceVersion")), str(metadata.get("uid") or metadata.get("name"))
        is_news = self._printed.get(key) != version
        self._printed[key] = version
        return is_news

    def _report(self, error: Exception) -> None:
        """Print a problem once, until the member has answered or the problem is another."""
        text = f"{describe_problem(self._member.name, error)}; trying again"
        if text != self._last_problem:
            print_problems({self._member.name: text})
        self._last_problem = text


def _metadata_of(changed: Object) -> Object:
    """Return the metadata of the object of an event, which is the object or a Table of one row."""
    rows = changed.get("rows")
    obj = (rows[0].get("object") or {}) if rows else changed
    found: Object = obj.get("metadata") or {}
    return found


def _version_of(changed: Object) -> str:
    return str(_metadata_of(changed).get("resourceVersion") or "")
