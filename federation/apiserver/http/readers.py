"""Reads of one kind that something else answers in place of the registry: it adds objects that are not stored here.

`app.py` authenticates, authorizes and audits the request, `resthandlers.py` renders what the reader returns. Writes,
and the requests that a reader leaves alone, go to the registry.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from federation.apiserver.http.asgi import Request
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import ListOptions, ListResult

WatchBatch = list[tuple[str, bytes]]


class Reader(Protocol):
    """Answers the reads of one kind. Objects are JSON with `apiVersion` and `kind`; errors are ApiErrors."""

    def answers(self, request: Request) -> bool:
        """Return whether the reader answers the request."""
        ...

    async def get(self, request: Request, info: KindInfo, namespace: str, name: str) -> bytes:
        """Return one object; NotFound."""
        ...

    async def list(self, request: Request, info: KindInfo, namespace: str, options: ListOptions) -> ListResult:
        """Return one page of a list; it may add to the warnings of the request."""
        ...

    def watch(
        self, request: Request, info: KindInfo, namespace: str, options: ListOptions
    ) -> AsyncGenerator[WatchBatch, None]:
        """Yield batches of (type, object) until the timeout of the options."""
        ...


Readers = Mapping[tuple[str, str, str], Reader]
"""Readers by group, version and plural."""
