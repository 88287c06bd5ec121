"""The aggregator: one worker per APIService of another server, which keeps its condition, addresses and documents.

A worker probes every 30 s, soon after a failure, and at once after a change of the APIService, its Service or the
Service's endpoints. It writes condition `Available` with kube-aggregator's reasons, and reports to the registry's table
of APIServices what the server serves, for discovery and OpenAPI. Requests never wait for a worker.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import orjson
from prometheus_client import Gauge

from federation.apimachinery.clock import Clock
from federation.apimachinery.conditions import set_condition
from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.resources import API_SERVICES, ENDPOINT_SLICES, ENDPOINTS, SERVICES, Object
from federation.apimachinery.tasks import Supervisor
from federation.apimachinery.webhookclient import WebhookClient, WebhookClientOptions
from federation.apiserver.aggregation.backends import Backend, ClientIdentity, Prober
from federation.apiserver.aggregation.proxy import Proxy, ProxyOptions
from federation.apiserver.aggregation.targets import Problem
from federation.apiserver.http.asgi import Request
from federation.apiserver.registry.apiservices import APIEntry, ServiceBackend
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.strategies.apiservices import AVAILABLE
from federation.apiserver.store.interface import Event
from federation.apiserver.verbs.requestoptions import WriteOptions

_unavailable = Gauge("federation_server_apis_unavailable", "APIServices whose server does not answer")
_PROBE_INTERVAL_S: Final = 30.0
_RETRY_S_MIN: Final = 0.5
_DOCUMENT_BYTES_MAX: Final = 4 * 1024 * 1024
_SERVICES: Final = f"/core/{SERVICES.plural}/"
_ENDPOINTS: Final = f"/core/{ENDPOINTS.plural}/"
_SLICES: Final = f"/{ENDPOINT_SLICES.group}/{ENDPOINT_SLICES.plural}/"
_OPTIONS = WriteOptions(field_manager="federation-apiserver")


@dataclass(slots=True)
class _Worker:
    """The state of one worker: the service it probes, and the event that starts the next probe."""

    service: ServiceBackend | None
    task: "asyncio.Task[None] | None" = None
    is_due: asyncio.Event = field(default_factory=asyncio.Event)


class Aggregator:
    """The aggregated API servers of one registry. `identity` returns the client certificate and key and may block."""

    def __init__(
        self,
        registry: Registry,
        *,
        identity: Callable[[], ClientIdentity],
        clock: Clock,
        options: ProxyOptions | None = None,
    ) -> None:
        self._registry = registry
        self._apis = registry.apis
        self._clock = clock
        self._client = WebhookClient(WebhookClientOptions(calls_per_host_max=0, response_bytes_max=_DOCUMENT_BYTES_MAX))
        self._prober = Prober(registry, self._client, identity)
        self._backends: dict[str, Backend] = {}
        self._proxy = Proxy(self._client, self._backends, options or ProxyOptions())
        self._workers: dict[str, _Worker] = {}
        self._is_changed = asyncio.Event()
        self._is_needed = asyncio.Event()
        self._apis.on_change(self._is_changed.set)
        self.stop = self._proxy.stop
        self.close = self._client.close

    async def serve(self, request: Request, entry: APIEntry, *, timeout_s: float | None, path: str = "") -> None:
        """Forward an authorized request, as `Proxy.serve`."""
        await self._proxy.serve(request, entry, timeout_s=timeout_s, path=path)

    async def run(self) -> None:
        """Keep the conditions of APIServices until cancelled."""
        supervisor = Supervisor(self._clock)
        supervisor.add("aggregation-workers", self._run_workers)
        for prefix in (_SERVICES, _ENDPOINTS, _SLICES):
            supervisor.add("aggregation-services", partial(self._follow, prefix))
        await supervisor.run()

    async def _run_workers(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    self._is_changed.clear()
                    self._adjust_workers(group)
                    await self._is_changed.wait()
        finally:
            self._workers.clear()

    def _adjust_workers(self, group: asyncio.TaskGroup) -> None:
        """Start workers of new APIServices, end those of others, and notify those whose service changed."""
        wanted = {entry.name: entry for entry in self._apis.remote.values()}
        for name in self._workers.keys() - wanted.keys():
            worker = self._workers.pop(name)
            self._backends.pop(name, None)
            if worker.task is not None:
                worker.task.cancel()
        for name, entry in wanted.items():
            found = self._workers.get(name)
            if found is None:
                self._workers[name] = found = _Worker(entry.service)
                self._backends[name] = Backend()
                supervisor = Supervisor(self._clock)
                supervisor.add("aggregation-worker", partial(self._work, name, found))
                found.task = group.create_task(supervisor.run(), name=f"aggregation-{name}")
            elif found.service != entry.service:
                found.service = entry.service
                # The old server must not get another request.
                self._backends[name].addresses = ()
                found.is_due.set()
        if wanted:
            self._is_needed.set()
        _unavailable.set(sum(not entry.is_available for entry in wanted.values()))

    async def _work(self, name: str, worker: _Worker) -> None:
        """Probe one server again and again."""
        retry_s = _RETRY_S_MIN
        while True:
            worker.is_due.clear()
            is_well = await self._refresh(name)
            retry_s = _RETRY_S_MIN if is_well else min(retry_s * 2, _PROBE_INTERVAL_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PROBE_INTERVAL_S if is_well else retry_s):
                    await worker.is_due.wait()
                    retry_s = _RETRY_S_MIN

    async def _refresh(self, name: str) -> bool:
        """Probe a server and record the result; return whether all went well."""
        entry, backend = self._apis.entries.get(name), self._backends.get(name)
        if entry is None or entry.service is None or backend is None:
            return True  # this worker is about to end
        probe = await self._prober.probe(entry, entry.service)
        current = self._apis.entries.get(name)
        if current is None or current.service != entry.service:
            return False  # the probe was for another server
        backend.addresses = probe.addresses
        known = self._apis.documents(entry.group_version)
        # Before the condition: clients that wait for it find the resources in discovery.
        if probe.problem is None:
            documents = await self._prober.documents(entry, probe, known)
        else:
            documents = type(known)(known.resources, is_fresh=False, openapi_hash=known.openapi_hash)
        self._apis.set_documents(entry.group_version, documents)
        try:
            await self._report(entry, probe.problem)
        except ApiError:
            return False  # for example a concurrent write
        return probe.problem is None and documents.is_fresh

    async def _report(self, entry: APIEntry, problem: Problem | None) -> None:
        """Write the condition if it differs."""
        info = self._registry.kinds.by_kind(API_SERVICES.group, API_SERVICES.version, API_SERVICES.kind)
        try:
            live: Object = orjson.loads(await self._registry.get(info, "", entry.name))
        except NotFound:
            return
        if live["metadata"]["uid"] != entry.uid or live.get("spec") != entry.spec:
            return  # the probe was for another state
        status = live.get("status") or {}
        known = status.get("conditions") or []
        reason, message = problem or ("Passed", "all checks passed")
        changed = set_condition(
            known,
            type_=AVAILABLE,
            status="True" if problem is None else "False",
            now=self._clock.now(),
            reason=reason,
            message=message,
        )
        if changed is not known:
            updated = {**live, "status": {**status, "conditions": changed}}
            await self._registry.update(info, "", entry.name, updated, _OPTIONS, subresource="status")

    async def _follow(self, prefix: str) -> None:
        """Start probes after changes of Services and their endpoints, once there is an APIService that needs them."""
        await self._is_needed.wait()
        revision = await self._registry.revision()
        for worker in self._workers.values():
            worker.is_due.set()  # what was written before this watch is not in it
        async for batch in self._registry.store.watch(prefix, revision):
            for event in batch:
                self._notify(prefix, event)

    def _notify(self, prefix: str, event: Event) -> None:
        namespace, _, name = event.key[len(prefix) :].partition("/")
        affected = [
            worker
            for worker in self._workers.values()
            if worker.service is not None and worker.service.namespace == namespace
        ]
        if affected and prefix == _SLICES:
            labels = encoding.decode(event.value)["metadata"].get("labels") or {}
            name = labels.get("kubernetes.io/service-name") or ""
        for worker in affected:
            if worker.service is not None and worker.service.name == name:
                worker.is_due.set()
