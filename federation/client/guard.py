"""A client with limits: calls in flight, a circuit breaker and metrics per cluster, around any other client.

One slow member may hold its own slots, never another's. The client inside can be replaced while callers keep this one,
which is how credentials rotate under running informers. Probes by `raw` pass an open circuit and close it when
answered.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prometheus_client import Counter, Gauge, Histogram

from federation.api.resources import Object, Resource
from federation.base.clock import Clock, SystemClock
from federation.base.errors import ApiError, ClusterError, ClusterUnreachable, RequestTimeout
from federation.base.metrics import LATENCY_BUCKETS_S
from federation.client.breaker import Breaker, BreakerOptions, Circuit
from federation.client.protocol import Client, ObjectList, Objects, PatchType, WatchBatch

_requests = Counter("federation_client_requests_total", "Calls by how they ended", ["cluster", "verb", "code"])
_durations = Histogram(
    "federation_client_request_seconds", "Time of one call", ["cluster", "verb"], buckets=LATENCY_BUCKETS_S
)
_in_flight = Gauge("federation_client_in_flight", "Calls that wait for their answer", ["cluster"])
_circuit = Gauge("federation_client_circuit_open", "1 while the circuit is not closed", ["cluster"])

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Limits of one cluster."""

    in_flight_max: int = 32
    """Calls at a time; watches and raw requests are not counted."""
    slot_timeout_s: float = 30.0
    """How long a call waits for a slot."""
    breaker: BreakerOptions = field(default_factory=BreakerOptions)


class GuardedClient:
    """A `Client` for one named cluster."""

    def __init__(
        self, cluster: str, client: Client, *, clock: Clock | None = None, options: GuardOptions | None = None
    ) -> None:
        self.cluster = cluster
        self._client = client
        self._clock = clock or SystemClock()
        self._options = options or GuardOptions()
        self.breaker = Breaker(self._clock, self._options.breaker)
        self._slots = asyncio.Semaphore(self._options.in_flight_max)
        self._gauge = _in_flight.labels(cluster)
        self._circuit = _circuit.labels(cluster)
        self._requests: dict[tuple[str, str], Counter] = {}
        self._durations: dict[str, Histogram] = {}
        self._recovered: list[Callable[[str], None]] = []

    def replace(self, client: Client) -> Client:
        """Use another client from now on and return the one before, which the caller closes."""
        before, self._client = self._client, client
        self.breaker = Breaker(self._clock, self._options.breaker)
        self._circuit.set(0)
        return before

    def on_recovered(self, listener: Callable[[str], None]) -> None:
        """Call the listener with the cluster's name when its circuit closes again."""
        self._recovered.append(listener)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """As `Client.get`."""
        return await self._call("get", lambda: self._client.get(resource, name, namespace))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """As `Client.list`."""
        return await self._call(
            "list",
            lambda: self._client.list(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_token=continue_token,
            ),
        )

    async def create(self, resource: Resource, obj: Object, *, field_manager: str = "") -> Object:
        """As `Client.create`."""
        return await self._call("create", lambda: self._client.create(resource, obj, field_manager=field_manager))

    async def update(
        self, resource: Resource, obj: Object, *, subresource: str = "", field_manager: str = ""
    ) -> Object:
        """As `Client.update`."""
        return await self._call(
            "update",
            lambda: self._client.update(resource, obj, subresource=subresource, field_manager=field_manager),
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: bytes | Object | Objects,
        *,
        patch_type: PatchType,
        namespace: str = "",
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """As `Client.patch`."""
        return await self._call(
            "apply" if patch_type is PatchType.APPLY else "patch",
            lambda: self._client.patch(
                resource,
                name,
                body,
                patch_type=patch_type,
                namespace=namespace,
                subresource=subresource,
                field_manager=field_manager,
                force=force,
                dry_run=dry_run,
            ),
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation_policy: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
    ) -> None:
        """As `Client.delete`."""
        await self._call(
            "delete",
            lambda: self._client.delete(
                resource,
                name,
                namespace,
                propagation_policy=propagation_policy,
                uid=uid,
                resource_version=resource_version,
                grace_period_s=grace_period_s,
            ),
        )

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int = 0,
    ) -> AsyncIterator[WatchBatch]:
        """As `Client.watch`; needs no slot, because watches stay."""
        self._check()
        batches = self._client.watch(
            resource,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            timeout_s=timeout_s,
        )
        is_told = False
        breaker = self.breaker
        try:
            async for batch in batches:
                if not is_told:
                    is_told = True
                    self._end("watch", "200", breaker)
                yield batch
        except (ApiError, ClusterError) as failure:
            self._end("watch", _code(failure), breaker, failure)
            raise
        finally:
            if isinstance(batches, AsyncGenerator):
                await batches.aclose()

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_s: float = 30.0,
    ) -> tuple[int, bytes]:
        """As `Client.raw`; passes an open circuit and needs no slot: it is how a cluster's health is asked."""
        breaker = self.breaker
        try:
            answer = await self._client.raw(method, path, query=query, body=body, timeout_s=timeout_s)
        except (ApiError, ClusterError) as failure:
            self._end("raw", _code(failure), breaker, failure)
            raise
        self._end("raw", str(answer[0]), breaker)
        return answer

    async def close(self) -> None:
        """Close the client inside."""
        await self._client.close()

    async def _call(self, verb: str, send: Callable[[], Awaitable[T]]) -> T:
        self._check()
        if self._slots.locked():
            await self._wait_for_slot()
        else:
            await self._slots.acquire()
        breaker, started_s = self.breaker, self._clock.monotonic()
        self._gauge.inc()
        try:
            answer = await send()
        except (ApiError, ClusterError) as failure:
            self._end(verb, _code(failure), breaker, failure)
            raise
        else:
            self._end(verb, "200", breaker)
            return answer
        finally:
            self._gauge.dec()
            self._slots.release()
            self._duration(verb).observe(self._clock.monotonic() - started_s)

    def _check(self) -> None:
        if self.breaker.wait_s() > 0:
            # The same words every time: they become conditions, and a number that runs would be a write each time.
            raise ClusterUnreachable(f"cluster {self.cluster} does not answer; it is left alone for a while")

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
            if acquiring.done() and not acquiring.cancelled():
                self._slots.release()
            raise
        finally:
            acquiring.cancel()
            deadline.cancel()
        if self.breaker.state is not Circuit.OPEN:
            return
        try:
            self._check()  # the circuit opened while we waited
        except ClusterUnreachable:
            self._slots.release()
            raise

    def _end(self, verb: str, code: str, breaker: Breaker, failure: Exception | None = None) -> None:
        counter = self._requests.get((verb, code))
        if counter is None:
            counter = self._requests[verb, code] = _requests.labels(self.cluster, verb, code)
        counter.inc()
        if isinstance(failure, ClusterUnreachable | RequestTimeout):
            breaker.fail()
        elif breaker.succeed():
            for listener in self._recovered:
                listener(self.cluster)
        if breaker is self.breaker:
            self._circuit.set(0 if breaker.state is Circuit.CLOSED else 1)

    def _duration(self, verb: str) -> Histogram:
        found = self._durations.get(verb)
        if found is None:
            found = self._durations[verb] = _durations.labels(self.cluster, verb)
        return found


def _code(failure: Exception) -> str:
    if isinstance(failure, ApiError):
        return str(failure.code)
    if isinstance(failure, RequestTimeout):
        return "timeout"
    return "unreachable" if isinstance(failure, ClusterUnreachable) else "unusable"
