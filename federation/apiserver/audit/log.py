"""The audit log: a bounded queue of entries, and a writer that appends them to a file as lines of JSON.

The event loop only queues entries; the writer's thread decodes, redacts and serialises bodies. Files are rotated by
size. Every event that is dropped or cannot be written is counted.
"""

import asyncio
import contextlib
import os
import sys
from collections import deque
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import structlog
from prometheus_client import Counter

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ConfigurationError, ServiceUnavailable
from federation.apiserver.audit.auditoptions import STDOUT, AuditOptions, Mask, Mode, unchanged
from federation.apiserver.audit.redaction import to_recorded

_log = structlog.get_logger(__name__)
_written = Counter("federation_server_audit_events_total", "Audit events that were written")
_dropped = Counter("federation_server_audit_dropped_total", "Audit events that were lost, by reason", ["reason"])
for _reason in ("queue", "write"):
    _dropped.labels(_reason)
TRUNCATED = {"audit.k8s.io/truncated": "true"}
"""Annotation of an event without the body that its level includes."""
_EVENT_BYTES = 2048
"""Assumed size of an entry without bodies."""
_BATCH_MAX = 500
_RETRY_S = 1.0


@dataclass(slots=True)
class Body:
    """Raw bytes of a request or response body, and how to record them."""

    data: bytes
    content_type: str
    is_redacted: bool
    includes_managed_fields: bool


@dataclass(slots=True)
class Entry:
    """An event, and the bodies that the writer adds to it."""

    event: dict[str, Any]
    request: Body | None = None
    response: Body | None = None
    includes_request: bool = True
    """Whether the request body is recorded; otherwise it only completes `objectRef`."""

    @property
    def size(self) -> int:
        """Approximate size in memory, in bytes."""
        bodies = (self.request, self.response)
        return _EVENT_BYTES + sum(len(body.data) for body in bodies if body is not None)


class AuditLog:
    """The queue and its writer. `run` writes until cancelled; `close` writes the rest."""

    def __init__(self, options: AuditOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._sink = _Stdout() if options.log_path == STDOUT else _Files(options)
        self._queue: deque[Entry] = deque()
        self._bytes = 0
        self._has_entries = asyncio.Event()
        self._has_space = asyncio.Event()
        self._has_space.set()
        self._writing: asyncio.Task[bool] | None = None
        self._is_broken = False

    async def wait_for_space(self) -> None:
        """In blocking mode, return when the queue has space; ServiceUnavailable when that takes too long."""
        if self._options.mode is Mode.BATCH or self._has_space.is_set():
            return
        try:
            async with asyncio.timeout(self._options.wait_s_max):
                await self._has_space.wait()
        except TimeoutError as error:
            raise ServiceUnavailable("the audit log cannot be written at present") from error

    def put(self, entry: Entry) -> None:
        """Queue an entry; in batch mode drop it when the queue is full."""
        size = entry.size
        if self._bytes + size > self._options.queue_bytes_max:
            if self._options.mode is Mode.BATCH:
                _dropped.labels("queue").inc()
                return
            # Blocking mode keeps this entry and makes the next requests wait.
            self._has_space.clear()
        self._bytes += size
        self._queue.append(entry)
        self._has_entries.set()

    async def run(self) -> None:
        """Write queued entries until cancelled."""
        while True:
            await self._has_entries.wait()
            self._writing = asyncio.ensure_future(self._write_batch())
            # Cancelling this loop must not cancel a write in progress: `close` awaits it.
            if not await asyncio.shield(self._writing):
                await self._clock.sleep(_RETRY_S)

    async def close(self) -> None:
        """Write the queued entries; count those that cannot be written."""
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        while self._queue and await self._write_batch():
            pass
        _dropped.labels("write").inc(len(self._queue))
        self._sink.close()

    async def _write_batch(self) -> bool:
        """Write the oldest entries and remove them from the queue; False when they must be retried."""
        batch = list(islice(self._queue, _BATCH_MAX))
        if not await asyncio.to_thread(self._write, batch):
            return False
        for entry in batch:
            self._queue.popleft()
            self._bytes -= entry.size
        if self._bytes < self._options.queue_bytes_max:
            self._has_space.set()
        if not self._queue:
            self._has_entries.clear()
        return True

    def _write(self, batch: list[Entry]) -> bool:
        """Write a batch, in a thread; False when that failed and the batch must not be lost."""
        try:
            self._sink.write([to_line(entry, self._options.mask) for entry in batch])
        except OSError as error:
            if not self._is_broken:
                _log.error("audit log cannot be written", path=self._options.log_path, problem=error.strerror)
            self._is_broken = True
            if self._options.mode is Mode.BLOCKING:
                return False
            _dropped.labels("write").inc(len(batch))
        else:
            self._is_broken = False
            _written.inc(len(batch))
        return True


def to_line(entry: Entry, mask: Mask = unchanged) -> bytes:
    """Return the event as one line of JSON, its bodies redacted and masked."""
    event = dict(entry.event)
    if entry.request is not None:
        obj = _to_object(entry.request, mask)
        if isinstance(obj, dict):
            _complete_reference(event, obj)
        if obj is not None and entry.includes_request:
            event["requestObject"] = obj
    if entry.response is not None and (obj := _to_object(entry.response, mask)) is not None:
        event["responseObject"] = obj
    try:
        return orjson.dumps(event) + b"\n"
    except (orjson.JSONEncodeError, RecursionError):
        # Content from clients may not be serialisable, for example half a surrogate pair. Record the rest.
        client_fields = ("annotations", "requestObject", "responseObject")
        kept = {name: value for name, value in event.items() if name not in client_fields}
        return orjson.dumps(kept | {"annotations": TRUNCATED}) + b"\n"


def _to_object(body: Body, mask: Mask) -> Any:
    return to_recorded(
        body.data,
        body.content_type,
        is_redacted=body.is_redacted,
        includes_managed_fields=body.includes_managed_fields,
        mask=mask,
    )


def _complete_reference(event: dict[str, Any], obj: dict[str, Any]) -> None:
    """Add namespace, name, uid and resourceVersion of the body to `objectRef`, as kube-apiserver does."""
    metadata, reference = obj.get("metadata"), event.get("objectRef")
    if isinstance(metadata, dict) and reference is not None:
        for name in ("namespace", "name", "uid", "resourceVersion"):
            value = metadata.get(name)
            if isinstance(value, str) and value and name not in reference:
                event["objectRef"] = reference = {**reference, name: value}


class _Stdout:
    def write(self, lines: list[bytes]) -> None:
        sys.stdout.buffer.write(b"".join(lines))
        sys.stdout.buffer.flush()

    def close(self) -> None:
        pass


class _Files:
    """A log file that only its owner can read, and its rotated predecessors."""

    def __init__(self, options: AuditOptions) -> None:
        self._path = Path(options.log_path)
        self._options = options
        self._descriptor = -1
        self._size = 0
        try:
            self._open()
        except OSError as error:
            raise ConfigurationError(f"audit-log-path {self._path}: {error.strerror}") from error

    def write(self, lines: list[bytes]) -> None:
        """Append lines, rotating between them. A failed write is undone, so that no file holds a partial line."""
        if self._descriptor < 0:
            self._open()
        pending: list[bytes] = []
        for line in lines:
            if self._size and self._size + len(line) > self._options.file_bytes_max:
                self._append(b"".join(pending))
                pending = []
                self._rotate()
            pending.append(line)
            self._size += len(line)
        self._append(b"".join(pending))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._descriptor).st_size

    def _append(self, data: bytes) -> None:
        start = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, start)
            self._size = start
            raise

    def _rotate(self) -> None:
        self.close()
        for number in range(self._options.backups_max, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)
        self._open()
