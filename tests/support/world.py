"""A whole federation in one process: the product's own wiring over registries in memory, on a virtual clock, from a seed.

`async with a_world() as world` starts a host, members with the simulator's workload controllers, and a control plane.
The members have joined: a world begins from stores that are prepared once per process (`a_base`). A scenario writes as a user (`world.user`) or as a member's administrator
(`world.members["east"].admin`), breaks connections and restarts the control plane; `until` advances the clock until a
condition holds. At the end the world must converge and satisfy `invariants.py`. A failure prints the seed and the state.
Nothing sleeps in real time.
"""

import asyncio
import base64
import contextlib
import functools
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import orjson

from federation.admission.deviceselectors import selects
from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS
from federation.apimachinery import conditions
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import (
    AlreadyExists,
    ApiError,
    ClusterError,
)
from federation.apimachinery.resources import DEPLOYMENTS, EVENTS, SECRETS, Object, Resource
from federation.apimachinery.webhooks import WebhookCaller
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.interface import Event
from federation.assembly import HOST_REGISTRY
from federation.client.client import Client, PatchType, Transport
from federation.client.execplugin import run_plugin
from federation.client.limitedtransport import LimitedTransport, TransportLimits
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool, PoolOptions
from federation.client.retryingwebhookclient import WebhookTransport
from federation.controllers.federate.controller import first_finalizers, host_effects
from federation.featureapi.surroundings import GateTransport, RunProgram
from federation.features.types.shippedtypes import ensure_types
from federation.journal.memoryjournal import MemoryJournal
from federation.planning.federatedobject.naming import federated_object_name
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from federation.settings import Settings
from federation.simulator.options import NodeShape
from federation.wiring import Wiring
from tests.support.deletions import HostStore, objection
from tests.support.faults import SkewedClock, StoreCopy, copy_of, restored
from tests.support.lines import Cable, HostLine
from tests.support.reconciles import failed_reconciles
from tests.support.worldmember import Member, find, raise_failures

T = TypeVar("T")
Service = Callable[[ManualClock], WebhookTransport]
"""Creates the network to HTTP plugins, on the world's clock."""
NAMES = ("east", "north", "west")
_PATIENCE_S = 180.0
"""Timeout of `until`, in virtual seconds."""
_SEED_OF_HOST, _SEED_OF_MEMBERS = 1_000_001, 1_000_002
"""Seeds of the bases. No world has them: it would create the uids that its base has."""
_QUIET_S = 5.5
"""Virtual seconds without a write after which a world has settled: longer than the time between two reports of resources."""


class Base(NamedTuple):
    """The stores of a world that has converged, by member; the host's is "". Worlds begin from it at little cost."""

    now: datetime
    stores: dict[str, StoreCopy]


class World:
    """Host, members and the running control plane (`plane`)."""

    def __init__(
        self,
        seed: int,
        *,
        has_workloads: bool,
        has_reports: bool,
        in_flight_max: int,
        plugins: PluginRegistry | None,
        service: Service | None,
        gates: GateTransport | None,
        webhooks: WebhookCaller | None,
        run_program: RunProgram,
        base: "Base | None",
        spreading: Mapping[str, Sequence[NodeShape]],
        nodes: Mapping[str, Sequence[NodeShape]],
        settings: Mapping[str, Any],
    ) -> None:
        self.seed = seed
        self.clock = ManualClock(base.now if base is not None else None)
        self.plane_clock = SkewedClock(self.clock)
        """The clock of the control plane; its wall time may be wrong."""
        self._base = base
        self._webhooks = webhooks
        self._build_host(base.stores[""] if base is not None else None, seed)
        self.members: dict[str, Member] = {}
        self._addresses: dict[str, Member] = {}
        """The members by the addresses of their API servers, which they keep."""
        self._started: list[Member] = []
        """Every member that runs, also those that a scenario took out of `members`."""
        self.journal = MemoryJournal()
        self.notes: list[str] = []
        """Notes that a failure prints in addition to the state."""
        self.in_flight_max = in_flight_max
        self._spreading = spreading
        self.nodes = {**nodes, **spreading}
        self._settings = settings
        self._plugins = plugins or _plugins()
        self._webhook_transport = None if service is None else service(self.clock)
        self._gate_transport = gates
        self._run_program = run_program
        self._has_workloads = has_workloads
        self._has_reports = has_reports
        self._host: asyncio.Task[None] | None = None
        self._checking: set[asyncio.Task[None]] = set()
        self._running: list[asyncio.Task[None]] = []
        self._failed_before = failed_reconciles()
        self.plane = self._wire()

    def _build_host(self, copy: StoreCopy | None, seed: int) -> None:
        self.store = HostStore(self.clock)
        restored(self.store, copy)
        self.registry = Registry(
            self.store, clock=self.clock, options=HOST_REGISTRY, entropy=SeededEntropy(seed), webhooks=self._webhooks
        )
        self.host_line = HostLine(self.registry)
        self.user = LocalClient(self.registry, user_agent="kubectl")

    def _wire(self) -> Wiring:
        """Return a control plane without any state in memory."""
        pool = ClusterPool(
            connect=self._connect,
            clock=self.plane_clock,
            options=PoolOptions(limits=TransportLimits(in_flight_max=self.in_flight_max)),
        )
        client = Client(self.host_line)
        settings = Settings(Path("unused"), **self._settings)
        plane = Wiring(
            client,
            pool,
            self.journal,
            settings,
            self.plane_clock,
            plugins=self._plugins,
            webhook_transport=self._webhook_transport,
            gate_transport=self._gate_transport,
            metrics_transport=self._gate_transport,
            run_program=self._run_program,
            is_full=self.registry.is_full,
        )
        finalizers = first_finalizers(plane.types, plane.policy_selection)
        self.registry.set_creation_finalizers(finalizers, manager="federation")
        self.registry.set_effect(host_effects(plane.types, plane.policy_selection))
        return plane

    def _connect(self, connection: Connection) -> Transport:
        return self._addresses[connection.server].line

    # -- life

    async def begin(self, members: Mapping[str, Mapping[str, str]]) -> None:
        """Start the host, the members and the control plane, and join the members that are not in the base."""
        if self._base is None:
            await self.registry.install_crds(crd_manifests())
            await ensure_types(self.user)
        else:
            await self.registry.start()
        self._host = asyncio.create_task(self.registry.run())
        stores = self._base.stores if self._base is not None else {}
        # Before the control plane, which finds the members of the base at once.
        for name, labels in members.items():
            await self.add_member(name, labels, stores.get(name))
        self.start()
        for name in members:
            if name not in stores:
                await self.join(name)
        await self.until_ready(*members)
        await self.settle()

    async def add_member(self, name: str, labels: Mapping[str, str], copy: StoreCopy | None = None) -> None:
        """Start a member cluster, an empty one without a copy; it is not joined."""
        seed = self.seed * 100 + len(self._started) + 1
        nodes = self.nodes.get(name, ())
        member = self.members[name] = Member(
            name,
            self.clock,
            seed,
            labels,
            has_workloads=self._has_workloads,
            has_reports=self._has_reports,
            nodes=nodes,
            has_spreads=name in self._spreading,
            copy=copy,
        )
        member.line.judge = functools.partial(objection, self.store, name)
        self._started.append(member)
        self._addresses[f"https://{name}"] = member
        await member.start()

    async def replace_member(self, name: str, copy: StoreCopy | None) -> None:
        """Restore a member from a backup; without one, a new and empty cluster is at its address."""
        await self.members[name].replace(copy)
        guard = self.plane.pool._transports.get(name)
        if guard is not None:
            checking = asyncio.create_task(_connected(guard))
            self._checking.add(checking)
            checking.add_done_callback(self._checking.discard)

    async def restore_host(self, copy: StoreCopy) -> None:
        """Restore the host from a backup, and start the control plane again."""
        await self.stop()
        await self._stop_host()
        self._build_host(copy, self.seed + copy.revision)
        await self.registry.start()
        self._host = asyncio.create_task(self.registry.run())
        for name, member in self.members.items():
            member.line.judge = functools.partial(objection, self.store, name)
        await self.restart()

    def add_line(self, name: str, member: Member) -> None:
        """Add what answers at an address of its own, and is no member of the world."""
        self.members[name] = self._addresses[f"https://{name}"] = member

    def rename(self, old: str, new: str) -> None:
        """Let a member that is not joined have another name from now on."""
        member = self.members[new] = self.members.pop(old)
        member.name = new
        member.line.judge = functools.partial(objection, self.store, new)

    async def join(self, name: str) -> None:
        """Create the FederatedCluster and its Secret, as `fedctl join` does."""
        token = base64.b64encode(b"token").decode()
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": names.SYSTEM_NAMESPACE},
            "data": {names.SECRET_BOOTSTRAP_TOKEN: token},
        }
        cluster = {
            "apiVersion": FEDERATED_CLUSTERS.api_version,
            "kind": "FederatedCluster",
            "metadata": {"name": name, "labels": self.members[name].labels},
            "spec": {"apiEndpoint": self._address(name), "insecure": True, "secretRef": {"name": name}},
        }
        with contextlib.suppress(AlreadyExists):  # of an earlier membership
            await self.user.create(SECRETS, secret)
        await self.user.create(FEDERATED_CLUSTERS, cluster)

    def _address(self, name: str) -> str:
        return next(address for address, member in self._addresses.items() if member is self.members[name])

    async def unjoin_by_force(self, name: str) -> None:
        """Do what `fedctl unjoin --force` does: the FederatedCluster goes without the member's help."""
        forced = {"metadata": {"annotations": {names.FORCED_REMOVAL: "it is lost"}}}
        await self.merge(FEDERATED_CLUSTERS, name, forced)
        await self.user.delete(FEDERATED_CLUSTERS, name)

    def start(self) -> None:
        """Run the control plane."""
        self._running = [
            asyncio.create_task(_forever(run), name=name) for name, run in (*self.plane.caches, *self.plane.loops)
        ]

    async def stop(self) -> None:
        """Stop the control plane immediately."""
        running, self._running = self._running, []
        for task in (*running, *self._checking):
            task.cancel()
        raise_failures(await asyncio.gather(*running, return_exceptions=True))

    @property
    def cables(self) -> list[Cable]:
        """The connections of the control plane to the host and the members."""
        return [self.host_line.cable, *(member.line.cable for member in self.members.values())]

    def kill(self) -> None:
        """Kill the control plane: nothing that it still does takes effect. `restart` starts it again."""
        for cable in self.cables:
            cable.is_cut = True
        for task in self._running:
            task.cancel()

    async def restart(self) -> None:
        """Replace the control plane by a new one without state in memory; calls to members are counted from here."""
        await self.stop()
        for cable in self.cables:
            cable.is_cut = False
        for member in self.members.values():
            member.line.calls.clear()
        self.plane = self._wire()
        self.start()

    async def end(self) -> None:
        """Stop everything."""
        await self.stop()
        for member in self._started:
            await member.stop()
        await self._stop_host()

    async def _stop_host(self) -> None:
        if self._host is not None:
            self._host.cancel()
            raise_failures(await asyncio.gather(self._host, return_exceptions=True))

    # -- reading and writing as a user

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Create an object on the host."""
        return await self.user.create(resource, obj)

    async def merge(self, resource: Resource, name: str, patch: Object, namespace: str = "default") -> Object:
        """Patch an object on the host."""
        return await self.user.patch(resource, name, patch, patch_type=PatchType.MERGE, namespace=namespace)

    async def scale(self, name: str, replicas: int) -> Object:
        """Scale a Deployment on the host."""
        return await self.merge(DEPLOYMENTS, name, {"spec": {"replicas": replicas}})

    async def find(self, resource: Resource, name: str, namespace: str = "default") -> Object | None:
        """Return an object of the host, None when there is none."""
        return await find(self.user, resource, name, namespace)

    async def federated(self, name: str) -> Object:
        """Return the federated object of a Deployment."""
        return await self.user.get(FEDERATED_OBJECTS, federated_object_name(name, "deployments.apps"), "default")

    async def condition(self, name: str, type_: str) -> Mapping[str, Any]:
        """Return a condition of a Deployment's federated object, {} when there is none."""
        status = (await self.federated(name)).get("status") or {}
        return conditions.find(status.get("conditions"), type_) or {}

    async def replicas(self, name: str) -> dict[str, int]:
        """Return the desired replicas of the Deployment by member that has it."""
        found = {member.name: await member.replicas(name) for member in self.members.values()}
        return {cluster: count for cluster, count in found.items() if count is not None}

    async def status(self, name: str) -> Object:
        """Return the merged status of a Deployment."""
        return (await self.user.get(DEPLOYMENTS, name, "default")).get("status") or {}

    async def events(self) -> list[tuple[str, str]]:
        """Return reason and message of all events of the host."""
        await self.plane.recorder.wait_idle()
        return [(event["reason"], event["message"]) for event in (await self.user.list(EVENTS)).items]

    def failed(self) -> float:
        """Return how many reconciles of any controller have failed unexpectedly in this world."""
        return failed_reconciles() - self._failed_before

    # -- waiting

    async def until(self, look: Callable[[], Awaitable[T]], what: str = "") -> T:
        """Advance the clock until the coroutine function returns a true value, and return it."""
        deadline_s = self.clock.monotonic() + _PATIENCE_S
        while not (seen := await look()):
            self._check_running()
            assert self.clock.monotonic() < deadline_s, f"never happened: {what or look}; last seen: {seen!r}"
            await self.clock.advance(0.05)
        return seen

    async def until_equal(self, look: Callable[[], Awaitable[Any]], expected: Any) -> None:
        """Advance the clock until the coroutine function returns the expected value."""
        deadline_s = self.clock.monotonic() + _PATIENCE_S
        while (seen := await look()) != expected:
            self._check_running()
            assert self.clock.monotonic() < deadline_s, f"expected {expected!r}, last seen: {seen!r}"
            await self.clock.advance(0.05)

    async def until_replicas(self, name: str, expected: Mapping[str, int]) -> None:
        """Wait until the members have exactly these desired replicas."""
        await self.until_equal(lambda: self.replicas(name), dict(expected))

    async def until_available(self, name: str, count: int) -> None:
        """Wait until the merged status has this number of available replicas and the newest generation."""

        async def look() -> tuple[Any, Any]:
            deployment = await self.user.get(DEPLOYMENTS, name, "default")
            status = deployment.get("status") or {}
            is_newest = status.get("observedGeneration") == deployment["metadata"]["generation"]
            return status.get("availableReplicas", 0), is_newest

        await self.until_equal(look, (count, True))

    async def until_gone(self, resource: Resource, name: str, namespace: str = "default") -> None:
        """Wait until the host has no such object."""
        await self.until_equal(lambda: self.find(resource, name, namespace), None)

    async def lose(self, *members: str) -> None:
        """Cut members off, and wait until they have their taints."""
        for name in members:
            self.members[name].line.mode = "down"
        await self.until_ready(*members, status="Unknown")

    async def bring_back(self, *members: str) -> None:
        """Connect members again, and wait until they are ready."""
        for name in members:
            self.members[name].line.mode = "up"
        await self.until_ready(*members)

    async def until_ready(self, *clusters: str, status: str = "True") -> None:
        """Wait until the clusters are published as Ready, or not."""

        async def look() -> set[str]:
            found = (await self.user.list(FEDERATED_CLUSTERS)).items
            held = {c["metadata"]["name"]: (c.get("status") or {}).get("conditions") for c in found}
            return {name for name in clusters if _status(held.get(name), names.CLUSTER_READY) != status}

        await self.until_equal(look, set())

    async def pass_time(self, seconds: float) -> None:
        """Advance the clock by this time, in small steps."""
        await self.clock.pass_time(seconds)
        self._check_running()

    async def settle(self) -> None:
        """Wait until no store has been written for `_QUIET_S`."""
        quiet_s, revisions = 0.0, await self.revisions()
        deadline_s = self.clock.monotonic() + _PATIENCE_S
        while quiet_s < _QUIET_S:
            assert self.clock.monotonic() < deadline_s, "the world does not converge"
            await self.pass_time(0.2)
            before, revisions = revisions, await self.revisions()
            quiet_s = quiet_s + 0.2 if before == revisions else 0.0

    async def revisions(self) -> dict[str, int]:
        """Return the revision of every store; they have no gaps, so differences count writes. The host's name is ""."""
        stores = {"": self.store, **{member.name: member.store for member in self.members.values()}}
        return {name: await store.revision() for name, store in stores.items()}

    def copy(self) -> Base:
        """Return the content of all stores, as the base of further worlds."""
        stores = {name: copy_of(member.store) for name, member in self.members.items()}
        return Base(self.clock.now(), {"": copy_of(self.store), **stores})

    def changes(self, name: str, since: int) -> list[str]:
        """Return the changes of a store after a revision, in words, if it remembers them; the host's name is ""."""
        return [describe_change(event) for event in self.events_since(name, since)]

    def events_since(self, name: str, since: int) -> list[Event]:
        """Return the changes of a store after a revision, if it remembers them; the host's name is ""."""
        store = self.store if not name else self.members[name].store
        return [change.event for change in store._watch_cache.cache.changes_since(since)]

    def objections(self) -> list[str]:
        """Return the deletions in members for which there was no reason, and the writes that lose fields."""
        lines = (self.host_line, *(member.line for member in self.members.values()))
        return [problem for line in lines for problem in line.objections]

    def _check_running(self) -> None:
        members = (task for member in self._started for task in member.tasks)
        for task in (*self._running, self._host, *members):
            if task is not None and task.done():
                task.result()
                raise AssertionError(f"{task.get_name()} has ended")

    async def describe(self) -> str:
        """Return the state that explains a failed scenario."""
        lines = [f"seed {self.seed}, after {self.clock.monotonic():.2f} s", *self.notes]
        for obj in (await self.user.list(FEDERATED_OBJECTS)).items[:5]:
            annotations = {key.rpartition("/")[2]: value for key, value in obj["metadata"]["annotations"].items()}
            annotations.pop("scheduling-triggers", None)
            facts = {"placed": obj["spec"].get("placements"), "status": obj.get("status"), "annotations": annotations}
            lines.append(f"{obj['metadata']['name']}: {json.dumps(facts)}")
        for cluster in (await self.user.list(FEDERATED_CLUSTERS)).items:
            held = (cluster.get("status") or {}).get("conditions")
            lines.append(f"{cluster['metadata']['name']}: Ready={_status(held, names.CLUSTER_READY)}")
        for event in (await self.user.list(EVENTS)).items[-20:]:
            lines.append(f"event {event['reason']}: {event['message']}")
        return "\n".join(lines)


def describe_change(event: Event) -> str:
    """Return a change with the top-level fields, or fields of the status, that it changes."""
    before, after = (orjson.loads(value) if value else {} for value in (event.previous, event.value))
    changed = {}
    for part, left, right in (("", before, after), ("status.", before.get("status") or {}, after.get("status") or {})):
        fields = (left.keys() | right.keys()) - {"metadata", "status"}
        changed |= {part + key: (left.get(key), right.get(key)) for key in fields if left.get(key) != right.get(key)}
    return f"{event.type} {event.key}: {changed}"


def _status(held: Any, type_: str) -> str:
    return str((conditions.find(held, type_) or {}).get("status", ""))


async def _connected(guard: LimitedTransport) -> None:
    """Check the identity of a member, as each new connection of a real one does."""
    with contextlib.suppress(ApiError, ClusterError):
        await guard.connected()


async def _forever(run: Callable[[], Awaitable[None]]) -> None:
    await run()


@contextlib.asynccontextmanager
async def a_world(
    *,
    members: Sequence[str] = NAMES,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    seed: int = 1,
    has_workloads: bool = True,
    has_reports: bool = False,
    in_flight_max: int = 32,
    plugins: PluginRegistry | None = None,
    service: Service | None = None,
    gates: GateTransport | None = None,
    webhooks: WebhookCaller | None = None,
    run_program: RunProgram = run_plugin,
    base: Base | None = None,
    is_new: bool = False,
    guard_share: float = 0.2,
    spreading: Mapping[str, Sequence[NodeShape]] | None = None,
    nodes: Mapping[str, Sequence[NodeShape]] | None = None,
    replicas_per_minute: int = 600,
    toleration_s: int = 300,
    health_threshold_s: float = 3.0,
    preemption_interval_s: float = 0.0,
    metric_sources_file: str = "",
    cluster_providers_file: str = "",
    is_replayed: bool = True,
    is_judged: bool = True,
) -> AsyncIterator[World]:
    """Run a federation for the block and check the invariants at its end, and that its decisions can be repeated.

    It begins from the base. Without one its members have joined and it has converged; with `is_new` it begins empty and
    the members join.
    With a `guard_share` of 1, nothing is held. The members in `spreading` run the WorkloadSpread service on the nodes
    that it names. With a higher `health_threshold_s`, the loss of a member is published
    later. Without workloads, members with `has_reports` report Deployments as running at once. A world that is not
    judged ends as it is: its test judges it.
    """
    from tests.support.invariants import violations
    from tests.support.replays import differences

    if base is None and not is_new:
        base = await a_base(*members, labels=labels, spreading=spreading, nodes=nodes)
    random.seed(seed)  # the jitter of pauses
    world = World(
        seed,
        has_workloads=has_workloads,
        has_reports=has_reports,
        in_flight_max=in_flight_max,
        plugins=plugins,
        service=service,
        gates=gates,
        webhooks=webhooks,
        run_program=run_program,
        base=base,
        spreading=spreading or {},
        nodes=nodes or {},
        settings={
            "guard_share": guard_share,
            "health_threshold_s": health_threshold_s,
            "failover_replicas_per_minute": replicas_per_minute,
            "metric_sources_file": metric_sources_file,
            "cluster_providers_file": cluster_providers_file,
            "failover_toleration_s": toleration_s,
            "preemption_interval_s": preemption_interval_s,
        },
    )
    try:
        await world.begin({name: (labels or {}).get(name, {}) for name in members})
        yield world
        found: list[str] = []
        if is_judged:
            await world.settle()
            found = await violations(world)
        if is_judged and is_replayed:
            found += await differences(world.journal, plugins or _plugins())
        assert not found, "\n".join(found)
    except BaseException as error:
        error.add_note(await world.describe())
        raise
    finally:
        await world.end()


a_world_without_pods = functools.partial(a_world, has_workloads=False, has_reports=True)
"""A world whose members report Deployments as running at once; for scenarios that do not look at pods."""
_plugins = functools.cache(functools.partial(load_plugins, selects=selects))
_bases: dict[tuple[tuple[str, ...], str], Base] = {}


async def a_base(
    *members: str,
    labels: Mapping[str, Mapping[str, str]] | None = None,
    spreading: Mapping[str, Sequence[NodeShape]] | None = None,
    nodes: Mapping[str, Sequence[NodeShape]] | None = None,
) -> Base:
    """Return the stores of a federation whose members have joined and run no workloads; made once per process."""
    nodes = {name: nodes[name] for name in members if name in nodes} if nodes else {}
    key = (members, repr((labels or {}, spreading or {}, nodes)))
    if key not in _bases:
        host, seed = (await a_base(), _SEED_OF_MEMBERS) if members else (None, _SEED_OF_HOST)
        async with a_world(
            members=members,
            labels=labels,
            spreading=spreading,
            nodes=nodes,
            seed=seed,
            has_workloads=False,
            base=host,
            is_new=True,
        ) as world:
            _bases[key] = world.copy()
    return _bases[key]
