"""Kubernetes Events: reports to users about their objects.

`event` never blocks and never raises: it puts a report into a bounded queue that `run` writes to the host. A repeated
report (same object, type, reason and message) raises the count of the existing Event. From the eleventh message on,
reports that differ only in their message share one Event, as in client-go. A report about a federated object is
written for its source object too, which the user knows (docs/reference/federation.md).
"""

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import structlog
from prometheus_client import Counter

from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.apimachinery.clock import Clock, SystemClock, to_rfc3339
from federation.apimachinery.errors import ApiError, ClusterError, NotFound
from federation.apimachinery.ownerreferences import owner_references
from federation.apimachinery.resources import EVENTS, Object, group_kind_of
from federation.client.client import Client

_log = structlog.get_logger(__name__)
_written = Counter("federation_runtime_events_written_total", "Events created or counted up", ["type"])
_dropped = Counter("federation_runtime_events_dropped_total", "Events lost: queue full or write failed", ["why"])

NORMAL, WARNING = "Normal", "Warning"
MESSAGE_LENGTH_MAX = 1024
"""Kubernetes rejects longer messages."""
_COMBINED = "(combined from similar events): "
_FEDERATED_KINDS = frozenset((FEDERATED_OBJECTS.kind, CLUSTER_FEDERATED_OBJECTS.kind))


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Limits of the recorder."""

    queue_max: int = 4096
    """Distinct reports that wait to be written; more are dropped and counted."""
    writes_max: int = 16
    """Concurrent writes: one commit of the store takes all of them."""
    remembered_max: int = 4096
    """Written Events that can still be counted up."""
    remembered_s: float = 600.0
    """After this long without a repetition a report becomes a new Event."""
    similar_max: int = 10
    """Distinct messages per object and reason before further ones share one Event, as in client-go."""


class Recorder(Protocol):
    """Records events; the part of `EventRecorder` that controllers use."""

    def event(self, obj: Object, type_: str, reason: str, message: str) -> None:
        """Report about the object: type_ is Normal or Warning, reason CamelCase. Never blocks, never raises."""
        ...


class _Report(NamedTuple):
    """The identity of a report; equal reports share an Event."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class _Waiting:
    """A queued report: its count, and its first and last time."""

    count: int
    first: datetime
    last: datetime
    resource_version: str
    message: str


@dataclass(slots=True)
class _Written:
    """An Event on the host that can be counted up."""

    namespace: str
    name: str
    count: int
    last: datetime
    message: str


@dataclass(slots=True)
class _Similar:
    """Messages of reports that are otherwise equal, up to one more than the limit."""

    messages: set[str]
    last: datetime


class EventRecorder:
    """Writes events of one component through the host's client."""

    def __init__(
        self,
        client: Client,
        *,
        component: str = "federation",
        clock: Clock | None = None,
        options: EventOptions | None = None,
    ) -> None:
        self._client = client
        self._component = component
        self._clock = clock or SystemClock()
        self._options = options or EventOptions()
        self._queue: OrderedDict[_Report, _Waiting] = OrderedDict()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._written: OrderedDict[_Report, _Written] = OrderedDict()
        self._similar: OrderedDict[_Report, _Similar] = OrderedDict()
        self._sequence = itertools.count()

    def event(self, obj: Object, type_: str, reason: str, message: str) -> None:
        """Report about the object, or about its source if it is a federated object.

        Warnings are written for both. Normal events are written for the source only: they are frequent, and each is a
        write.
        """
        text = message if len(message) <= MESSAGE_LENGTH_MAX else message[: MESSAGE_LENGTH_MAX - 1] + "…"
        namespace = str((obj.get("metadata") or {}).get("namespace", ""))
        source = source_of(obj) if str(obj.get("kind", "")) in _FEDERATED_KINDS else None
        if source is not None:
            api_version, kind = str(source.get("apiVersion", "")), str(source.get("kind", ""))
            name, uid = str(source.get("name", "")), str(source.get("uid", ""))
            self._put(_Report(api_version, kind, namespace, name, uid, type_, reason, text), "")
        if source is None or type_ == WARNING:
            metadata = obj.get("metadata") or {}
            api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
            name, uid = str(metadata.get("name", "")), str(metadata.get("uid", ""))
            version = str(metadata.get("resourceVersion", ""))
            self._put(_Report(api_version, kind, namespace, name, uid, type_, reason, text), version)

    async def wait_idle(self) -> None:
        """Return once everything reported so far is written or dropped."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write reports until cancelled."""
        while True:
            while not self._queue:
                self._idle.set()
                self._arrived.clear()
                await self._arrived.wait()
            async with asyncio.TaskGroup() as writes:
                for _ in range(min(len(self._queue), self._options.writes_max)):
                    writes.create_task(self._deliver(*self._queue.popitem(last=False)))

    async def _deliver(self, report: _Report, waiting: _Waiting) -> None:
        try:
            await self._write(report, waiting)
            _written.labels(report.type).inc()
        except (ApiError, ClusterError) as failure:
            _dropped.labels("refused").inc()
            _log.debug("event not written", reason=report.reason, kind=report.kind, error=str(failure))

    def _put(self, report: _Report, resource_version: str) -> None:
        now = self._clock.now()
        message = report.message
        if self._exceeds_similar(report, now):
            report, message = report._replace(message=_COMBINED), (_COMBINED + message)[:MESSAGE_LENGTH_MAX]
        waiting = self._queue.get(report)
        if waiting is not None:
            waiting.count += 1
            waiting.last = now
            waiting.message = message
            return
        if len(self._queue) >= self._options.queue_max:
            _dropped.labels("queue full").inc()
            return
        self._queue[report] = _Waiting(1, now, now, resource_version, message)
        self._idle.clear()
        self._arrived.set()

    def _exceeds_similar(self, report: _Report, now: datetime) -> bool:
        """Record the message; return whether too many reports differ only in their message."""
        key = report._replace(message="")
        similar = self._similar.get(key)
        if similar is None or (now - similar.last).total_seconds() > self._options.remembered_s:
            similar = self._similar[key] = _Similar(set(), now)
        similar.last = now
        self._similar.move_to_end(key)
        if len(similar.messages) <= self._options.similar_max:
            similar.messages.add(report.message)
        while len(self._similar) > self._options.remembered_max:
            self._similar.popitem(last=False)
        return len(similar.messages) > self._options.similar_max

    async def _write(self, report: _Report, waiting: _Waiting) -> None:
        known = self._written.get(report)
        if known is not None and (waiting.last - known.last).total_seconds() <= self._options.remembered_s:
            try:
                await self._count_up(known, waiting)
            except NotFound:
                pass  # the Event expired on the server: a new one follows
            else:
                self._written.move_to_end(report)
                return
        created = await self._client.create(EVENTS, self._to_event(report, waiting))
        metadata = created["metadata"]
        self._written[report] = _Written(
            metadata["namespace"], metadata["name"], waiting.count, waiting.last, waiting.message
        )
        self._written.move_to_end(report)
        while len(self._written) > self._options.remembered_max:
            self._written.popitem(last=False)

    async def _count_up(self, known: _Written, waiting: _Waiting) -> None:
        count = known.count + waiting.count
        patch: Object = {"count": count, "lastTimestamp": to_rfc3339(waiting.last)}
        if waiting.message != known.message:
            patch["message"] = waiting.message
        await self._client.patch(EVENTS, known.name, patch, namespace=known.namespace)
        known.count, known.last, known.message = count, waiting.last, waiting.message

    def _to_event(self, report: _Report, waiting: _Waiting) -> Object:
        namespace = report.namespace or "default"
        involved: Object = {
            "apiVersion": report.api_version,
            "kind": report.kind,
            "name": report.name,
            "uid": report.uid,
            "resourceVersion": waiting.resource_version,
            "namespace": report.namespace,
        }
        # client-go's form: the object's name and a hexadecimal time in nanoseconds, here with a sequence number so that
        # two events at the same time differ, also on a virtual clock.
        nanoseconds = int(waiting.first.timestamp() * 1_000_000) * 1_000 + next(self._sequence) % 1_000
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": f"{report.name[:236]}.{nanoseconds:x}", "namespace": namespace},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": report.type,
            "reason": report.reason,
            "message": waiting.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": to_rfc3339(waiting.first),
            "lastTimestamp": to_rfc3339(waiting.last),
            "count": waiting.count,
        }


def source_of(federated: Object) -> Mapping[str, Any] | None:
    """Return the owner reference to the source of a federated object: the controller one of the template's kind."""
    template = (federated.get("spec") or {}).get("template") or {}
    for reference in owner_references(federated.get("metadata") or {}):
        same_kind = not template or group_kind_of(reference) == group_kind_of(template)
        if reference.get("controller") and same_kind:
            return dict(reference)
    return None
