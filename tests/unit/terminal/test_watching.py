"""A watched list prints an object again when its row changes, and nothing for changes that the row does not show."""

import asyncio
import contextlib
import io
from datetime import datetime
from pathlib import Path

from tests.support.apiserver import Parts, api_server

from federation.apimachinery.resources import CONFIGMAPS, Object
from federation.client.local import LocalClient
from federation.terminal.watching import Listing, print_listing


def row(item: Object, now: datetime) -> list[str]:  # the signature of a row
    return [item["metadata"]["name"], (item.get("data") or {}).get("shown", "-")]


LISTING = Listing(CONFIGMAPS, "NAME", "SHOWN", "none", row, "watched=yes")


class Output(io.StringIO):
    """Standard output that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._written = asyncio.Event()

    def write(self, text: str) -> int:
        self._written.set()
        return super().write(text)

    async def until(self, shown: str) -> None:
        async with asyncio.timeout(60):
            while shown not in self.getvalue():
                self._written.clear()
                await self._written.wait()


async def watch_some_changes(parts: Parts, text: Output) -> None:
    client = LocalClient(parts.registry)

    def config(name: str) -> Object:
        return {
            "metadata": {"name": name, "namespace": "default", "labels": {"watched": "yes"}},
            "data": {"shown": "1"},
        }

    await client.create(CONFIGMAPS, config("one"))
    watching = asyncio.create_task(print_listing(client, LISTING, "table", is_watched=True))
    await text.until("one")
    await client.patch(CONFIGMAPS, "one", {"data": {"hidden": "x"}}, namespace="default")
    await client.patch(CONFIGMAPS, "one", {"data": {"shown": "2"}}, namespace="default")
    await text.until("one   2")
    await client.create(CONFIGMAPS, config("two"))
    await text.until("two   1")
    await client.delete(CONFIGMAPS, "one", "default")
    await text.until("deleted")
    watching.cancel()


def test_only_visible_changes_are_printed(tmp_path: Path) -> None:
    text = Output()
    with api_server(tmp_path) as parts, contextlib.redirect_stdout(text):
        parts.run(watch_some_changes(parts, text))
    assert text.getvalue() == "NAME  SHOWN\none   1\none   2\ntwo   1\none  deleted\n"
