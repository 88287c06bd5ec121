"""The controllers that use members, on real registries in memory and a virtual clock.

`member_world(...)` runs host and members in one process: cluster, sync, status collection and aggregation work on local
clients, and `until` advances the clock until a condition holds. `Line` is the connection between the federation and a
member: it counts calls, and can hang or fail. Nothing sleeps in real time.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

from federation.admission.statusrules import compile_status_rule
from federation.api import names
from federation.api.federatedtype import from_config
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ClusterUnreachable, FederationError, InternalError, RequestTimeout
from federation.apimachinery.resources import DEPLOYMENTS, EVENTS, NAMESPACES, NODES, PODS, SECRETS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.assembly import HOST_REGISTRY
from federation.client.client import Client, PatchType, Request, Transport, Watch
from federation.client.local import LocalClient, LocalTransport
from federation.client.pool import ClusterPool
from federation.client.session import HTTPOptions
from federation.controllers.cluster.controller import ClusterController
from federation.controllers.federate.policyselection import PolicySelection
from federation.controllers.statusaggregate.controller import StatusAggregateController
from federation.controllers.statuscollect.controller import StatusCollectController
from federation.delivery.controller import SyncController
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.members.memberrecords import MemberRecords
from federation.planning.clusters.clusterresources import Collectors
from federation.runtime.events import EventRecorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers
from tests.support.preparedstores import a_host_store
from tests.support.wiredhost import wire_host

_PATIENCE_S = 120.0
"""Timeout of `until`, in virtual seconds."""
WRITES = frozenset({"create", "update", "patch", "delete"})


class Line(LocalTransport):
    """A transport to one server that counts calls and can fail: `mode` is "up", "down" (no connection) or "hang".

    `delays_s` is the delay of calls by verb, `loses_answers` are the verbs that take effect without an answer.
    """

    def __init__(self, registry: Registry, clock: ManualClock, user_agent: str = "federation") -> None:
        super().__init__(registry, user_agent=user_agent)
        self.mode = "up"
        self.calls: list[tuple[str, str, str]] = []
        """Verb, plural and name of every call."""
        self.delays_s: dict[str, float] = {}
        """How long a call of a verb takes to reach the server."""
        self.answer_delays_s: dict[str, float] = {}
        """How long its answer takes to come back: watches are faster then."""
        self.loses_answers: frozenset[str] = frozenset()
        self.failing: set[tuple[str, str]] = set()
        """Verb and plural of calls that the server answers with an error."""
        self.is_silent = False
        """Whether watches stay open and report nothing. As over HTTP, they end after a time without a byte."""
        self.missing: set[str] = set()
        """Paths of raw requests that the server answers with 404."""
        self.refusal: FederationError | None = None
        """What every call gets instead of its answer: the server answers, and refuses us."""
        self._clock = clock
        self._mended = asyncio.Event()

    def mend(self) -> None:
        """Pass calls through again; those that hang continue."""
        self.mode = "up"
        self._mended.set()
        self._mended = asyncio.Event()

    def writes(self, plural: str = "") -> list[tuple[str, str, str]]:
        """Return the writes to one plural, or to all."""
        return [call for call in self.calls if call[0] in WRITES and plural in ("", call[1])]

    async def _pass(self, verb: str, what: str, name: str, timeout_s: float = 30.0) -> None:
        self.calls.append((verb, what, name))
        if delay_s := self.delays_s.get(verb):
            await self._clock.sleep(delay_s)
        if self.mode == "down":
            raise ClusterUnreachable("connection refused")
        if self.refusal is not None:
            raise self.refusal
        if (verb, what) in self.failing:
            raise InternalError("injected")
        if self.mode == "hang":
            mended = asyncio.ensure_future(self._mended.wait())
            deadline = asyncio.ensure_future(self._clock.sleep(timeout_s))
            try:
                await asyncio.wait((mended, deadline), return_when=asyncio.FIRST_COMPLETED)
                if not mended.done():
                    raise RequestTimeout(f"no answer within {timeout_s:g} s")
            finally:
                mended.cancel()
                deadline.cancel()

    async def request(self, request: Request) -> Object:
        name = request.name or (json.loads(request.body)["metadata"]["name"] if request.verb == "create" else "")
        await self._pass(logged(request.verb), request.resource.plural, name)
        answer = await super().request(request)
        if delay_s := self.answer_delays_s.get(logged(request.verb)):
            await self._clock.sleep(delay_s)
        if logged(request.verb) in self.loses_answers:
            raise RequestTimeout("the answer was lost")
        return answer

    async def stream(self, request: Request) -> Watch:
        async for batch in super().stream(request):
            if batch and self.is_silent:
                await self._clock.sleep(HTTPOptions().watch_idle_timeout_s)
                return
            yield batch

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        await self._pass("raw", path, "", timeout_s)
        if path in self.missing:
            return 404, b"404 page not found"
        return await super().raw(method, path, body, timeout_s, accept)


def logged(verb: str) -> str:
    """Return the verb under which a call is counted."""
    return "patch" if verb == "apply" else verb


class MemberCluster:
    """One member: its registry, the connection to it, and an administrator's client."""

    def __init__(self, name: str, clock: ManualClock) -> None:
        self.name = name
        self.store = MemoryStore(clock=clock)
        # Its system namespace exists already, as after an earlier membership.
        self.registry = Registry(self.store, clock=clock, options=HOST_REGISTRY)
        self.line = Line(self.registry, clock)
        self.admin = LocalClient(self.registry, user_agent="admin")

    async def deployment(self, name: str = "web") -> Object | None:
        """Return a Deployment of the member, None when there is none."""
        found = (await self.admin.list(DEPLOYMENTS, "default", field_selector=f"metadata.name={name}")).items
        return found[0] if found else None

    async def report(self, name: str = "web", **status: Any) -> None:
        """Act as the Deployment controller: publish a status for the newest generation."""
        deployment = await self.admin.get(DEPLOYMENTS, name, "default")
        body = {"status": {"observedGeneration": deployment["metadata"]["generation"], **status}}
        await self.admin.patch(
            DEPLOYMENTS, name, body, patch_type=PatchType.MERGE, namespace="default", subresource="status"
        )


class ControlPlane:
    """The controllers over a host between two restarts."""

    def __init__(self, host: Registry, members: dict[str, MemberCluster], clock: ManualClock) -> None:
        self.line = Line(host, clock)
        self.client = Client(self.line)
        self.informers = Informers(self.client, clock=clock)
        self.types = FederatedTypes(self.informers, from_config)
        self.pool = ClusterPool(connect=lambda c: _connect(c, members), clock=clock)
        self.recorder = EventRecorder(self.client, clock=clock)
        self.host = wire_host(
            self.client, clock, pool=self.pool, informers=self.informers, types=self.types, recorder=self.recorder
        )
        self.objects, self.members = self.host.objects, self.host.members
        self.cluster = ClusterController(self.host, self.pool, Collectors())
        self.sync = SyncController(
            self.host,
            Tombstones(self.client, self.informers),
            MemberRecords(clock),
            PolicySelection(self.informers),
        )
        self.collect = StatusCollectController(self.host)
        self.aggregate = StatusAggregateController(self.host, compile_status_rule)

    def loops(self) -> Iterator[Callable[[], Coroutine[Any, Any, None]]]:
        """The loops to run."""
        yield from (self.informers.run, self.members.run, self.recorder.run)
        yield from (self.cluster.run, self.sync.run, self.collect.run, self.aggregate.run)


def _connect(connection: Connection, members: dict[str, MemberCluster]) -> Transport:
    return members[connection.server.removeprefix("https://")].line


class World:
    """Host, members and the running control plane."""

    def __init__(self, clock: ManualClock, store: MemoryStore) -> None:
        self.clock = clock
        self.store = store
        self.registry = Registry(self.store, clock=clock, options=HOST_REGISTRY)
        self.host = LocalClient(self.registry, user_agent="kubectl")
        self.members: dict[str, MemberCluster] = {}
        self.plane = ControlPlane(self.registry, self.members, clock)
        self._background: list[asyncio.Task[Any]] = []
        self._running: list[asyncio.Task[Any]] = []

    async def begin(self, members: int) -> None:
        """Start the host, create members and join them."""
        await self.registry.start()
        self._background.append(asyncio.create_task(self.registry.run()))
        self.start()
        for number in range(1, members + 1):
            await self.add_member(f"m{number}")
        for name in list(self.members):
            await self.join(name)
            await self.until_condition(name, names.CLUSTER_READY, "True")

    async def add_member(self, name: str) -> MemberCluster:
        """Create a member cluster with one node; it is not joined."""
        member = self.members[name] = MemberCluster(name, self.clock)
        self._background.append(asyncio.create_task(member.registry.run()))
        await member.registry.start()
        node = a_node()
        await member.admin.create(NODES, node)
        await member.admin.patch(
            NODES, "node-1", {"status": node["status"]}, patch_type=PatchType.MERGE, subresource="status"
        )
        return member

    async def join(self, name: str, **spec: Any) -> None:
        """Create the FederatedCluster and its Secret."""
        token = base64.b64encode(b"token").decode()
        await self.host.create(
            SECRETS,
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": names.SYSTEM_NAMESPACE},
                "data": {names.SECRET_BOOTSTRAP_TOKEN: token},
            },
        )
        await self.host.create(
            FEDERATED_CLUSTERS,
            {
                "apiVersion": FEDERATED_CLUSTERS.api_version,
                "kind": "FederatedCluster",
                "metadata": {"name": name},
                "spec": {"apiEndpoint": f"https://{name}", "insecure": True, "secretRef": {"name": name}, **spec},
            },
        )

    # -- the control plane

    def start(self) -> None:
        """Run the control plane."""
        self._running = [asyncio.create_task(loop()) for loop in self.plane.loops()]

    async def stop(self) -> None:
        """Stop the control plane immediately."""
        for task in self._running:
            task.cancel()
        for outcome in await asyncio.gather(*self._running, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        self._running = []

    async def restart(self) -> None:
        """Replace the control plane by a new one without state in memory."""
        await self.stop()
        for member in self.members.values():
            member.line.calls.clear()
        self.plane = ControlPlane(self.registry, self.members, self.clock)
        self.start()

    async def end(self) -> None:
        """Stop everything."""
        await self.stop()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    # -- federated objects, as federate and schedule write them

    async def place(self, name: str = "web", placement: dict[str, int | None] | None = None, **more: Any) -> Object:
        """Create a Deployment and its federated object, placed and with an empty pipeline."""
        source = await self.host.create(DEPLOYMENTS, a_deployment(name))
        metadata = {
            "name": f"{name}-deployments.apps",
            "namespace": "default",
            "finalizers": [names.SYNC_FINALIZER],
            "annotations": {names.PENDING_CONTROLLERS: "[]", **more.get("annotations", {})},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": name,
                    "uid": source["metadata"]["uid"],
                    "controller": True,
                }
            ],
        }
        template = a_deployment(name)
        template["metadata"]["generation"] = source["metadata"]["generation"]
        spec = {"template": {**template, **more.get("template", {})}, **placed(placement or {})}
        return await self.host.create(
            FEDERATED_OBJECTS,
            {
                "apiVersion": FEDERATED_OBJECTS.api_version,
                "kind": "FederatedObject",
                "metadata": metadata,
                "spec": spec,
            },
        )

    async def patch(self, body: Object, name: str = "web") -> Object:
        """Merge-patch a federated object."""
        return await self.host.patch(
            FEDERATED_OBJECTS,
            f"{name}-deployments.apps",
            body,
            patch_type=PatchType.MERGE,
            namespace="default",
        )

    async def federated(self, name: str = "web") -> Object:
        """Return a federated object as stored."""
        return await self.host.get(FEDERATED_OBJECTS, f"{name}-deployments.apps", "default")

    async def statuses(self, name: str = "web") -> dict[str, str]:
        """Return status.clusters as stored."""
        status = (await self.federated(name)).get("status") or {}
        return {entry["cluster"]: entry["status"] for entry in status.get("clusters") or ()}

    async def source(self, name: str = "web") -> Object:
        """Return the user's Deployment."""
        return await self.host.get(DEPLOYMENTS, name, "default")

    # -- clusters and events

    async def cluster(self, name: str) -> Object:
        """Return a FederatedCluster as stored."""
        return await self.host.get(FEDERATED_CLUSTERS, name)

    async def condition(self, name: str, type_: str) -> dict[str, Any]:
        """Return a FederatedCluster's condition, {} when there is none."""
        status = (await self.cluster(name)).get("status") or {}
        return next((c for c in status.get("conditions") or () if c["type"] == type_), {})

    async def until_condition(self, name: str, type_: str, status: str) -> dict[str, Any]:
        """Wait for a FederatedCluster's condition and return it."""

        async def look() -> Any:
            found = await self.condition(name, type_)
            return found if found.get("status") == status else None

        found: dict[str, Any] = await self.until(look, f"{name} {type_}={status}")
        return found

    async def events(self) -> list[tuple[str, str]]:
        """Return reason and message of all events."""
        await self.plane.recorder.wait_idle()
        return [(event["reason"], event["message"]) for event in (await self.host.list(EVENTS)).items]

    # -- waiting

    async def until(self, look: Callable[[], Awaitable[Any]], what: str = "", step_s: float = 0.02) -> Any:
        """Advance the clock until the coroutine function returns a true value; fail after two virtual minutes."""
        deadline_s = self.clock.monotonic() + _PATIENCE_S
        while not (seen := await look()):
            assert self.clock.monotonic() < deadline_s, f"never happened: {what or look}; {await self._dump()}"
            await self.clock.advance(step_s)
        return seen

    async def until_statuses(self, expected: dict[str, str], name: str = "web") -> None:
        """Wait until status.clusters of a federated object has this value."""

        async def look() -> bool:
            return await self.statuses(name) == expected

        await self.until(look, f"{name} has {expected}")

    async def pass_time(self, seconds: float, step_s: float = 0.05) -> None:
        """Advance the clock by this time, in small steps."""
        for _ in range(int(seconds / step_s)):
            await self.clock.advance(step_s)

    async def _dump(self) -> str:
        objects = (await self.host.list(FEDERATED_OBJECTS)).items
        clusters = (await self.host.list(FEDERATED_CLUSTERS)).items
        events = [(e["reason"], e["message"]) for e in (await self.host.list(EVENTS)).items]
        return json.dumps(
            {
                "objects": [{"meta": o["metadata"]["annotations"], "status": o.get("status")} for o in objects],
                "clusters": [{c["metadata"]["name"]: (c.get("status") or {}).get("conditions")} for c in clusters],
                "events": events,
            },
            indent=1,
        )


def placed(placement: dict[str, int | None]) -> Object:
    """Return placements and overrides as the scheduler writes them."""
    overrides = [
        {"cluster": c, "patches": [{"op": "replace", "path": "/spec/replicas", "value": n}]}
        for c, n in sorted(placement.items())
        if n is not None
    ]
    return {
        "placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": c} for c in sorted(placement)]}]
        if placement
        else [],
        "overrides": [{"controller": names.GLOBAL_SCHEDULER, "clusters": overrides}] if overrides else [],
    }


def a_deployment(name: str, replicas: int = 3, image: str = "nginx:1") -> Object:
    """Return a Deployment."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [
                        {"name": "web", "image": image, "resources": {"requests": {"cpu": "1000m", "memory": "1Gi"}}}
                    ]
                },
            },
        },
    }


def a_node(name: str = "node-1", cpu: str = "8", memory: str = "16Gi") -> Object:
    """Return a schedulable Node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_pod(name: str, cpu: str = "1") -> Object:
    """Return a Pod that requests CPU."""
    container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


@asynccontextmanager
async def member_world(members: int = 2) -> AsyncIterator[World]:
    """Run a host with joined members m1, m2, … for the block."""
    clock = ManualClock()
    world = World(clock, await a_host_store(clock))
    try:
        await world.begin(members)
        yield world
    finally:
        await world.end()


__all__ = [
    "NAMESPACES",
    "PODS",
    "Line",
    "MemberCluster",
    "World",
    "a_deployment",
    "a_node",
    "a_pod",
    "member_world",
    "placed",
]
