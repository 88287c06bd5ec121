"""Watch over HTTP: one JSON document per event and line, one write per batch of events.

A watch ends at `timeoutSeconds` (a random 30 to 60 minutes by default, so that clients do not all reconnect at once),
when the client disconnects, when the server stops, or with an ERROR event that carries a Status: 410 when the start is
too old, or when the client reads too slowly and its buffer overflowed.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import replace
from typing import Any

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, Expired
from federation.apimachinery.usedtime import charged, rest
from federation.apiserver.http.asgi import JSON_TYPE, SLICE_BYTES, Request
from federation.apiserver.http.negotiation import Representation, Shape
from federation.apiserver.http.rendering import include_object, to_partial
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.printers.printing import IncludeObject, to_table
from federation.apiserver.verbs.requestoptions import ListOptions

Batch = list[tuple[str, bytes]]
Watch = Callable[[KindInfo, str, ListOptions], AsyncGenerator[Batch, None]]
_FIRST_WAIT_S = 0.02
"""How long the headers wait for the first events, so that a watch that fails at once still gets its HTTP status."""
_DEFAULT_S_MIN, _DEFAULT_S_MAX = 1800, 3600
_PREFIX = {
    type_: b'{"type":"' + type_.encode() + b'","object":' for type_ in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
}
_SUFFIX = b"}\n"
_INITIAL_EVENTS_END = b'"k8s.io/initial-events-end"'


class WatchServer:
    """Serves the watches of one registry. `stop` ends all of them."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End every watch now, and every new one at once."""
        self._stopping.set()

    async def serve(
        self,
        request: Request,
        info: KindInfo,
        namespace: str,
        options: ListOptions,
        representation: Representation,
        watch: Watch | None = None,
    ) -> None:
        """Stream events until the watch ends. Raise ApiErrors only before the response has begun.

        They come from `watch`, by default that of the registry.
        """
        encode = _encoder(info, request, representation, self._clock)
        timeout_s = options.timeout_s or random.randint(_DEFAULT_S_MIN, _DEFAULT_S_MAX)  # noqa: S311  # spreads load
        batches = (watch or self._registry.watch)(info, namespace, replace(options, timeout_s=timeout_s))
        gone = asyncio.ensure_future(_disconnect(request))
        stopping = asyncio.ensure_future(self._stopping.wait())
        first = asyncio.ensure_future(anext(batches))
        try:
            with _Until(gone, stopping):
                await asyncio.wait((first,), timeout=_FIRST_WAIT_S)
                # An expired start is an ERROR event in a 200 response, which is how client-go's reflector expects it.
                if first.done() and isinstance(error := first.exception(), ApiError) and not isinstance(error, Expired):
                    raise error
                await _start(request)
                try:
                    await _deliver(request, encode, await first)
                    async for batch in batches:
                        await _deliver(request, encode, batch)
                except StopAsyncIteration:
                    pass
                except ApiError as error:
                    await _send(request, _error_event(error))
            # The empty last chunk lets the client see the regular end of the watch, not a broken connection.
            if not gone.done():
                if not request.status:
                    await _start(request)
                await request.send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await _close(batches, first, gone, stopping)


class _Until:
    """Ends its block without an error as soon as one of the futures is done, as `asyncio.timeout` does at a time.

    The block is cancelled, so it awaits nothing but the next batch: `asyncio.wait` on three tasks for every batch would
    cost more than the delivery of an event.
    """

    def __init__(self, *futures: "asyncio.Future[Any]") -> None:
        self._futures = futures
        self._task = asyncio.current_task()
        self._has_ended = False

    def __enter__(self) -> None:
        for future in self._futures:
            future.add_done_callback(self._end)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        for future in self._futures:
            future.remove_done_callback(self._end)
        assert self._task is not None
        return self._has_ended and self._task.uncancel() == 0 and kind is asyncio.CancelledError

    def _end(self, _: "asyncio.Future[Any]") -> None:
        if not self._has_ended and self._task is not None:
            self._has_ended = True
            self._task.cancel()


def _pieces(batch: Batch) -> Iterator[Batch]:
    """Yield a batch in small parts and large events alone: a client that does not read holds one part in memory."""
    start = size = 0
    for index, (_, value) in enumerate(batch):
        size += len(value)
        if size > SLICE_BYTES and index > start:
            yield batch[start:index]
            start, size = index, len(value)
    yield batch[start:] if start else batch


async def _close(batches: AsyncGenerator[Batch, None], *tasks: "asyncio.Future[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(ApiError):
        await batches.aclose()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _start(request: Request) -> None:
    request.status = 200
    headers = [(b"content-type", JSON_TYPE), (b"cache-control", b"no-cache, private"), *request.common_headers]
    await request.send({"type": "http.response.start", "status": 200, "headers": headers})
    # An empty chunk is not sent, but makes the server flush the headers.
    await _send(request, b"")


async def _deliver(request: Request, encode: Callable[[Batch], bytes], batch: Batch) -> None:
    """Send a batch. A large event is encoded only when the client has taken what was sent before it."""
    for piece in _pieces(batch):
        is_large = len(piece) == 1 and len(piece[0][1]) > SLICE_BYTES
        if is_large and encode is _encode_plain:
            # All watches share the bytes of the event; a copy for each client that does not read would fill the memory.
            [(type_, value)] = piece
            await _send(request, _PREFIX[type_])
            await request.send_slices(value, has_more=True)
            await _send(request, _SUFFIX)
            continue
        if is_large:
            await _send(request, b"")
        if encode is _encode_plain:
            body = encode(piece)
        else:
            # Each watch computes this form by itself, so that a user's watches could hold the event loop together.
            await rest()
            with charged():
                body = encode(piece)
        if len(body) > SLICE_BYTES:
            await request.send_counted(body)
        else:
            await _send(request, body)


async def _send(request: Request, body: bytes) -> None:
    await request.send({"type": "http.response.body", "body": body, "more_body": True})


def _error_event(error: ApiError) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": error.to_status()}) + b"\n"


def _encoder(
    info: KindInfo, request: Request, representation: Representation, clock: Clock
) -> Callable[[Batch], bytes]:
    """Return the function that encodes batches in the negotiated form."""
    if representation.shape is Shape.TABLE:
        return _table_encoder(info, include_object(request.query), representation.version, clock)
    if representation.shape is Shape.METADATA:
        version = representation.version
        return lambda batch: b"".join(
            _PREFIX[type_] + orjson.dumps(to_partial(value, version)) + _SUFFIX for type_, value in batch
        )
    return _encode_plain


def _encode_plain(batch: Batch) -> bytes:
    if len(batch) == 1:
        type_, value = batch[0]
        return b"%b%b}\n" % (_PREFIX[type_], value)
    parts: list[bytes] = []
    for type_, value in batch:
        parts += (_PREFIX[type_], value, _SUFFIX)
    return b"".join(parts)


def _table_encoder(info: KindInfo, include: IncludeObject, version: str, clock: Clock) -> Callable[[Batch], bytes]:
    """Return an encoder of one-row tables; only the first table carries the columns, as in kube-apiserver.

    A bookmark has no row, except the one that ends the initial events: its annotation is in the object of a row.
    """
    is_first = True

    def encode(batch: Batch) -> bytes:
        nonlocal is_first
        lines = []
        for type_, value in batch:
            resource_version = orjson.loads(value)["metadata"].get("resourceVersion", "")
            is_end = type_ == "BOOKMARK" and _INITIAL_EVENTS_END in value
            items = [value] if is_end or type_ != "BOOKMARK" else []
            table = to_table(
                info,
                items,
                now=clock.now(),
                include_object="Metadata" if is_end and include == "None" else include,
                resource_version=resource_version,
                has_columns=is_first,
            )
            table["apiVersion"] = f"meta.k8s.io/{version}"
            is_first = False
            lines.append(_PREFIX[type_] + orjson.dumps(table) + _SUFFIX)
        return b"".join(lines)

    return encode
