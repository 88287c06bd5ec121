"""A transport with limits: concurrent calls, a circuit breaker and metrics for one cluster, around another transport.

A slow member can block its own slots only. The inner transport can be replaced while callers keep this one, so
credentials rotate under running informers. `raw` bypasses the slots and an open circuit: health probes use it, and a
successful probe closes the circuit.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from prometheus_client import Counter, Gauge, Histogram

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ClusterIdentityMismatch,
    ClusterLimitExceeded,
    ClusterUnreachable,
    Conflict,
    RequestTimeout,
    RequestWithdrawn,
)
from federation.apimachinery.metrics import MEMBER_BUCKETS_S, show
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import StreamedResponse
from federation.client.breaker import Breaker, BreakerOptions, Circuit
from federation.client.client import Request, Transport, Watch
from federation.client.delegate import Delegate, Headers
from federation.client.identity import Identity, check_identity, is_checking
from federation.client.streams import MemberSocket

_requests = Counter("federation_client_requests_total", "Calls by how they ended", ["cluster", "verb", "code"])
_durations = Histogram("federation_client_request_seconds", "Time of one call", ["cluster"], buckets=MEMBER_BUCKETS_S)
_in_flight = Gauge("federation_client_in_flight", "Calls that wait for their answer", ["cluster"])
_mismatches = Counter(
    "federation_client_identity_mismatches_total", "Checks that found another cluster than the member", ["cluster"]
)
_circuit = Gauge("federation_client_circuit_open", "1 while the circuit is not closed", ["cluster"])


_WRITES = frozenset({"create", "update", "patch", "apply", "delete"})


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """Limits of one cluster."""

    in_flight_max: int = 32
    """Concurrent calls; watches and raw requests are not counted."""
    slot_timeout_s: float = 30.0
    """How long a call waits for a slot."""
    identity_retry_s: float = 1.0
    """How long calls fail without another check after the server proved to be another cluster."""
    breaker: BreakerOptions = field(default_factory=BreakerOptions)


class LimitedTransport:
    """A transport to one named cluster. `breaker` is the only circuit breaker of that cluster."""

    def __init__(
        self,
        cluster: str,
        transport: Transport,
        *,
        clock: Clock | None = None,
        options: TransportLimits | None = None,
        may_write: Callable[[], bool] | None = None,
    ) -> None:
        self.cluster = cluster
        self._may_write = may_write
        self._transport = transport
        self._clock = clock or SystemClock()
        self._options = options or TransportLimits()
        self.breaker = Breaker(self._clock, self._options.breaker)
        self._slots = asyncio.Semaphore(self._options.in_flight_max)
        self._gauge = _in_flight.labels(cluster)
        show(_circuit.labels(cluster), self.breaker, lambda breaker: breaker.state is not Circuit.CLOSED)
        self._requests: dict[tuple[str, str], Counter] = {}
        self._duration = _durations.labels(cluster)
        self._recovered: list[Callable[[str], None]] = []
        self._unreachable: list[Callable[[str], None]] = []
        self._identity: Identity | None = None
        self._checking = asyncio.Lock()
        # The connection set-up that was checked last, and the newest one; equal while no check is due.
        self._checked, self._epoch = 0, 0
        self._mismatch, self._mismatch_until_s = "", 0.0
        self.cluster_uid = ""
        """The uid that the last identity check found, "" before."""

    def expect(self, identity: Identity | None) -> None:
        """Check this identity before the next call; None for a cluster that has not joined."""
        if identity != self._identity:
            self._identity = identity
            self._recheck()

    def uses(self, transport: Transport) -> bool:
        """Return True if this is the inner transport, False for one that was replaced."""
        return transport is self._transport

    async def check_identity(self) -> None:
        """Check the identity if a check is due; ClusterIdentityMismatch, or what the check's requests raise."""
        due = self._epoch
        if is_checking.get():
            return
        while self._checked < due and self._identity is not None:
            async with self._checking:
                if self._checked < due:
                    await self._check(self._identity)

    async def connected(self) -> None:
        """Check the identity of the server behind a new connection."""
        self._epoch += 1
        await self.check_identity()

    async def _check(self, identity: Identity) -> None:
        if self._clock.monotonic() < self._mismatch_until_s:
            raise ClusterIdentityMismatch(self._mismatch)
        epoch, token = self._epoch, is_checking.set(True)
        try:
            uid = await check_identity(self.cluster, self._transport, identity)
        except ClusterIdentityMismatch as mismatch:
            _mismatches.labels(self.cluster).inc()
            self._mismatch = str(mismatch)
            self._mismatch_until_s = self._clock.monotonic() + self._options.identity_retry_s
            raise
        finally:
            is_checking.reset(token)
        self.cluster_uid, self._checked = uid, epoch
        was_wrong, self._mismatch = bool(self._mismatch), ""
        if was_wrong:
            for listener in self._recovered:
                listener(self.cluster)
        if self._identity == identity and not identity.cluster_uid:
            self._identity = replace(identity, cluster_uid=uid)

    def _recheck(self) -> None:
        self._epoch += 1
        self._mismatch_until_s = 0.0

    def replace(self, transport: Transport) -> Transport:
        """Use another inner transport, with a closed circuit, and return the old one; the caller closes it."""
        before, self._transport = self._transport, transport
        self.breaker = Breaker(self._clock, self._options.breaker)
        self._recheck()
        return before

    def on_recovered(self, listener: Callable[[str], None]) -> None:
        """Call the listener with the cluster's name whenever its circuit closes again."""
        self._recovered.append(listener)

    def on_unreachable(self, listener: Callable[[str], None]) -> None:
        """Call the listener with the cluster's name whenever a connection fails or breaks; not for timeouts."""
        self._unreachable.append(listener)

    async def request(self, request: Request) -> Object:
        """Carry out the request within the limits; ClusterUnreachable at once while the circuit is open.

        `may_write` is asked last before a write leaves: a process that was paused must not write for a new leader.
        So is `is_wanted` of the request: RequestWithdrawn if what it was for has ended meanwhile.
        """
        self._check_circuit()
        if self._slots.locked():
            await self._wait_for_slot()
        else:
            await self._slots.acquire()
        # A call that outlives `replace` reports to the breaker of the transport that it used.
        verb, breaker, started_s = request.verb, self.breaker, self._clock.monotonic()
        self._gauge.inc()
        try:
            if self._checked != self._epoch:
                await self.check_identity()
            if self._may_write is not None and request.verb in _WRITES and not self._may_write():
                raise Conflict(f"{self.cluster}: this process does not lead the controllers any more")
            if request.is_wanted is not None and not request.is_wanted():
                raise RequestWithdrawn(f"{self.cluster}: the {verb} of {request.name} is not wanted any more")
            answer = await self._transport.request(request)
        except (ApiError, ClusterError) as failure:
            self._record(verb, _code(failure), breaker, failure)
            raise
        else:
            self._record(verb, "200", breaker)
            return answer
        finally:
            self._gauge.dec()
            self._slots.release()
            self._duration.observe(self._clock.monotonic() - started_s)

    async def stream(self, request: Request) -> Watch:
        """Pass a watch through; it needs no slot, because watches last."""
        self._check_circuit()
        batches = self._transport.stream(request)
        is_recorded = False
        breaker = self.breaker
        try:
            if self._checked != self._epoch:
                await self.check_identity()
            async for batch in batches:
                if is_recorded:
                    breaker.record_event()
                else:
                    is_recorded = True
                    self._record("watch", "200", breaker)
                yield batch
        except (ApiError, ClusterError) as failure:
            self._record("watch", _code(failure), breaker, failure)
            raise
        finally:
            await batches.aclose()

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        """Send any request, even while the circuit is open, without a slot."""
        breaker = self.breaker
        try:
            answer = await self._transport.raw(method, path, body, timeout_s, accept)
        except (ApiError, ClusterError) as failure:
            self._record("raw", _code(failure), breaker, failure)
            raise
        self._record("raw", str(answer[0]), breaker)
        return answer

    @asynccontextmanager
    async def exchange(
        self, method: str, target: str, headers: Headers, body: AsyncIterator[bytes] | None
    ) -> AsyncIterator[StreamedResponse]:
        """As `Delegate.exchange`, without a slot."""
        async with (await self._delegate()).exchange(method, target, headers, body) as response:
            self._count("proxy", str(response.status))
            yield response

    @asynccontextmanager
    async def websocket(
        self, target: str, headers: Headers, subprotocols: Sequence[str]
    ) -> AsyncIterator[MemberSocket]:
        """As `Delegate.websocket`, without a slot."""
        async with (await self._delegate()).websocket(target, headers, subprotocols) as socket:
            self._count("proxy", "101")
            yield socket

    async def _delegate(self) -> Delegate:
        """Return the inner transport for requests of users.

        Their failures are not recorded: a user who makes a member hang up must not open the circuit of the controllers.
        """
        if self.breaker.state is Circuit.OPEN:
            raise self._left_alone()
        if self._checked != self._epoch:
            await self.check_identity()
        if not isinstance(self._transport, Delegate):
            raise ClusterUnreachable(f"cluster {self.cluster} has no HTTP connection")
        return self._transport

    async def close(self) -> None:
        """Close the inner transport."""
        await self._transport.close()

    def _check_circuit(self) -> None:
        if not self.breaker.try_acquire():
            raise self._left_alone()

    def _left_alone(self) -> ClusterUnreachable:
        # The text becomes a condition's message: a changing number in it would cause a write each time.
        return ClusterUnreachable(f"cluster {self.cluster} does not answer; it is left alone for a while")

    async def _wait_for_slot(self) -> None:
        acquiring = asyncio.ensure_future(self._slots.acquire())
        deadline = asyncio.ensure_future(self._clock.sleep(self._options.slot_timeout_s))
        try:
            await asyncio.wait((acquiring, deadline), return_when=asyncio.FIRST_COMPLETED)
            if not acquiring.done():
                raise RequestTimeout(
                    f"cluster {self.cluster}: no free slot of {self._options.in_flight_max} within"
                    f" {self._options.slot_timeout_s:g} s"
                )
        except BaseException:
            # The slot was acquired at the same moment and would never be released.
            if acquiring.done() and not acquiring.cancelled():
                self._slots.release()
            raise
        finally:
            acquiring.cancel()
            deadline.cancel()
        if self.breaker.state is not Circuit.OPEN:
            return
        try:
            self._check_circuit()  # it opened while this call waited
        except ClusterUnreachable:
            self._slots.release()
            raise

    def _count(self, verb: str, code: str) -> None:
        counter = self._requests.get((verb, code))
        if counter is None:
            counter = self._requests[verb, code] = _requests.labels(self.cluster, verb, code)
        counter.inc()

    def _record(self, verb: str, code: str, breaker: Breaker, failure: Exception | None = None) -> None:
        self._count(verb, code)
        if isinstance(failure, ClusterUnreachable | RequestTimeout):
            breaker.record_failure()
            self._epoch += 1  # what answers next may be another cluster
            if isinstance(failure, ClusterUnreachable):
                for listener in self._unreachable:
                    listener(self.cluster)
        elif breaker.record_success():
            for listener in self._recovered:
                listener(self.cluster)


def _code(failure: Exception) -> str:
    if isinstance(failure, ApiError):
        return str(failure.code)
    if isinstance(failure, RequestTimeout):
        return "timeout"
    if isinstance(failure, ClusterLimitExceeded):
        return "limit"
    if isinstance(failure, ClusterIdentityMismatch):
        return "identity"
    return "unreachable" if isinstance(failure, ClusterUnreachable) else "unusable"
