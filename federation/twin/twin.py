"""Run a twin: host, members and the control plane of a copied fleet, in this process and on a virtual clock.

`begin` brings the twin into the state of the fleet in two steps. First only the delivery runs, and puts into empty
members what the fleet has placed there, in the room that was used in the original. Then the rest of that room is
filled, and when the clusters have reported that, the whole control plane starts. So no decision sees members that are
emptier than the original ones.
"""

import asyncio
import base64
import random
from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.conditions import find
from federation.apimachinery.connection import Connection
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import Bug, ClusterUnreachable, ConfigurationError
from federation.apimachinery.resources import CRDS, SECRETS, Object
from federation.apimachinery.webhookclient import WebhookResponse
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store.interface import Entry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.options import StoreOptions
from federation.assembly import HOST_REGISTRY, protect_federated_objects
from federation.client.client import Client, Transport
from federation.client.local import LocalClient, LocalTransport
from federation.client.pool import ClusterPool
from federation.componentoptions import pool_options
from federation.controllers.federate.controller import first_finalizers, host_effects
from federation.features.catalogue import start_features
from federation.settings import Settings
from federation.twin.fleetcopy import Fleet, clusters_of, key_of
from federation.twin.happenings import Observation
from federation.twin.member import TwinMember
from federation.wiring import Run, Wiring

_DELIVERY = ("members", "events", "cluster", "sync")
"""The loops that fill the members, and see what is in them."""
_QUIET_S = 6.0
"""Longer than the time between two reports of resources."""
_SETTLE_S_MAX = 300.0
"""Virtual time after which a twin that is still changing begins nevertheless."""
_SILENCE_S = 120.0
"""Virtual time after which a silent cluster is published as not ready."""
_STORE = StoreOptions(history_rows_max=100_000)


class Twin:
    """A running twin. `user` writes as an administrator of the host."""

    def __init__(self, fleet: Fleet, settings: Settings, seed: int = 1) -> None:
        self._fleet = fleet
        self._settings = settings
        self._seed = seed
        self.clock = ManualClock(fleet.at)
        self.members: dict[str, TwinMember] = {}
        self.observation = Observation(self.clock)
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Start the twin; ConfigurationError for a fleet without clusters."""
        random.seed(self._seed)  # the jitter of pauses
        clusters = clusters_of(self._fleet)
        if not clusters:
            raise ConfigurationError("the fleet has no cluster that has joined, so there is nothing to rehearse")
        uids = await self._start_members(clusters)
        self._start_host(uids)
        await self.registry.start()
        await self.registry.install_crds(crd_manifests())
        await start_features(self.user, has_existing_host=False)
        self._tasks.append(asyncio.create_task(self.registry.run(), name="registry"))
        loops = dict(self.plane.loops)
        for name, run in (*self.plane.caches, *((name, loops.pop(name)) for name in _DELIVERY)):
            self._run(name, run)
        await self.settle()
        for member in self.members.values():
            await member.fill()
        await self.settle()  # the clusters report what they have now
        silent = {name: problem for name, each in clusters.items() if (problem := _problem_of(each)) is not None}
        for name, problem in silent.items():
            self.members[name].line.problem = problem
        if silent:
            await self.pass_time(_SILENCE_S)
        self.observation.begin(self.plane)
        self.observation.silence(silent)
        for name, run in loops.items():
            self._run(name, run)
        await self.settle()
        self.observation.restart()

    async def _start_members(self, clusters: Mapping[str, Object]) -> dict[str, str]:
        definitions = [_to_create(each) for each in self._fleet.of(CRDS)]
        uids = {}
        for number, (name, cluster) in enumerate(sorted(clusters.items()), 1):
            status = cluster.get("status") or {}
            resources, seed = status.get("resources") or {}, self._seed * 100_000 + number
            member = self.members[name] = TwinMember(name, resources, self.clock, seed)
            served = {(each.get("group") or "", each["kind"]) for each in status.get("apiResourceTypes") or ()}
            own = [each for each in definitions if (each["spec"]["group"], each["spec"]["names"]["kind"]) in served]
            uids[name] = await member.start(own, cluster)
        return uids

    def _start_host(self, uids: Mapping[str, str]) -> None:
        settings, clock = self._settings, self.clock
        store = MemoryStore(_STORE, clock=clock, seed=_entries(self._fleet, uids))
        self.registry = Registry(store, clock=clock, options=HOST_REGISTRY, entropy=SeededEntropy(self._seed))
        self.user = LocalClient(self.registry, user_agent="kubectl", requester=_administrator)
        pool = ClusterPool(connect=self._connect, clock=clock, options=pool_options(settings))
        nobody = _NoNetwork()
        self.plane = Wiring(
            Client(LocalTransport(self.registry)),
            pool,
            self.observation.journal,
            settings,
            clock,
            webhook_transport=nobody,
            gate_transport=nobody,
            metrics_transport=nobody,
            is_full=self.registry.is_full,
        )
        finalizers = first_finalizers(self.plane.types, self.plane.policy_selection)
        self.registry.set_creation_finalizers(finalizers, manager=names.FIELD_MANAGER)
        effect_of = host_effects(self.plane.types, self.plane.policy_selection)
        protect_federated_objects(self.registry, clock, effect_of, settings)

    def _connect(self, connection: Connection) -> Transport:
        return self.members[connection.server.removeprefix("https://")].line

    def _run(self, name: str, run: Run) -> None:
        self._tasks.append(asyncio.create_task(_forever(run), name=name))

    async def end(self) -> None:
        """Stop everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for member in self.members.values():
            await member.stop()
        plane = getattr(self, "plane", None)  # none if a member could not start
        if plane is not None:
            await plane.webhook_client.close()
            await plane.gate_client.close()

    # -- time

    async def pass_time(self, seconds: float) -> None:
        """Let virtual time pass; Bug if a part of the twin has ended."""
        await self.clock.pass_time(seconds)
        for task in (*self._tasks, *(task for member in self.members.values() for task in member.tasks)):
            if task.done():
                task.result()
                raise Bug(f"{task.get_name()} of the twin has ended")

    async def settle(self) -> None:
        """Let time pass until nothing was written for some seconds."""
        deadline_s, quiet_s = self.clock.monotonic() + _SETTLE_S_MAX, 0.0
        revisions = await self._revisions()
        while quiet_s < _QUIET_S and self.clock.monotonic() < deadline_s:
            await self.pass_time(0.5)
            before, revisions = revisions, await self._revisions()
            quiet_s = quiet_s + 0.5 if before == revisions else 0.0

    async def _revisions(self) -> list[int]:
        return [await self.registry.store.revision(), *[await member.revision() for member in self.members.values()]]


def _entries(fleet: Fleet, uids: Mapping[str, str]) -> list[Entry]:
    """Return the entries of the host's store, with clusters whose members are those of the twin."""
    objects: dict[str, Object] = dict(fleet.objects)
    for cluster in fleet.of(FEDERATED_CLUSTERS):
        name = str(cluster["metadata"]["name"])
        key = key_of(FEDERATED_CLUSTERS, "", name)
        if name not in uids:
            del objects[key]  # it has not joined, or leaves
            continue
        objects[key] = _joined(cluster, uids[name])
        objects[key_of(SECRETS, names.SYSTEM_NAMESPACE, name)] = _secret(name)
    return [_entry(key, obj, revision) for revision, (key, obj) in enumerate(sorted(objects.items()), 1)]


def _entry(key: str, obj: Object, revision: int) -> Entry:
    body = encoding.encode(encoding.encode_head(obj["apiVersion"], obj["kind"]), obj)
    return Entry(key, revision, revision, encoding.to_bytes(body, revision))


def _to_create(definition: Object) -> Object:
    """Return a definition as one that has not been stored."""
    metadata = {key: value for key, value in definition["metadata"].items() if key not in ("resourceVersion", "uid")}
    return {**definition, "metadata": metadata}


def _joined(cluster: Object, uid: str) -> Object:
    """Return a FederatedCluster that has joined as the twin's member of its name."""
    name = str(cluster["metadata"]["name"])
    spec = {"apiEndpoint": f"https://{name}", "insecure": True, "secretRef": {"name": name}}
    if taints := (cluster.get("spec") or {}).get("taints"):
        spec["taints"] = taints
    status = {key: value for key, value in cluster["status"].items() if key != "credential"}
    return {**cluster, "spec": spec, "status": {**status, "clusterUid": uid}}


def _secret(name: str) -> Object:
    token = base64.b64encode(b"twin").decode()
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"name": name, "namespace": names.SYSTEM_NAMESPACE, "uid": f"secret-of-{name}"},
        "type": "Opaque",
        "data": {names.SECRET_BOOTSTRAP_TOKEN: token},
    }


def _problem_of(cluster: Object) -> ClusterUnreachable | None:
    """Return why a cluster does not answer, None if it did."""
    ready = find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY) or {}
    if ready.get("status") == "True":
        return None
    return ClusterUnreachable(f"it was not ready in the fleet: {ready.get('message') or 'no condition'}")


def _administrator() -> Object:
    return {"username": "twin", "groups": ["system:masters", "system:authenticated"]}


async def _forever(run: Run) -> None:
    await run()


class _NoNetwork:
    """The network of a twin: nothing answers, so that a rehearsal reaches nobody."""

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        del connection, headers, timeout_s
        return WebhookResponse(0, error="a twin sends no requests")

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        del body
        return await self.get(connection, headers, timeout_s=timeout_s)


def problems_of(fleet: Fleet) -> Sequence[str]:
    """Return what of the fleet its twin does not have."""
    found = []
    if fleet.has_remote_plugins:
        found.append("scheduler plugins over HTTP are not called: what their profiles place stays where it is")
    silent = [name for name, cluster in clusters_of(fleet).items() if _problem_of(cluster) is not None]
    if silent:
        found.append(f"not ready in the fleet, and silent in the twin: {', '.join(sorted(silent))}")
    return found


def resources_of(fleet: Fleet) -> dict[str, Mapping[str, Any]]:
    """Return what each cluster of the fleet reported."""
    return {name: cluster["status"].get("resources") or {} for name, cluster in clusters_of(fleet).items()}
