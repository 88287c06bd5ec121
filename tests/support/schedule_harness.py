"""The schedule controller on a registry in memory: builders for watched objects, and waits without sleeping."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from federation.api import names
from federation.api.federatedtype import from_config
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.resources import EVENTS, Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.assembly import HOST_REGISTRY
from federation.client.client import PatchType
from federation.client.local import LocalClient
from federation.controllers.override.controller import OverrideController
from federation.controllers.schedule.controller import ScheduleController, ScheduleOptions
from federation.features.catalogue import decision_chain
from federation.journal.decisions import DecisionFilter, DecisionRecord
from federation.journal.memoryjournal import MemoryJournal
from federation.plans.plugincalls import RemoteCaller
from federation.runtime.events import EventRecorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.host import Host
from federation.runtime.informers import Informers
from federation.scheduling.engine import Engine
from federation.scheduling.framework.registry import PluginRegistry, load_plugins
from tests.support.preparedstores import a_host_store
from tests.support.wiredhost import wire_host

_TIMEOUT_S = 60.0
API_VERSION = "core.kubeadmiral.io/v1alpha1"
SERVED = [{"group": "apps", "version": "v1", "kind": "Deployment", "pluralName": "deployments", "scope": "Namespaced"}]


class CountingClient(LocalClient):
    """A local client that records patches."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry, user_agent="schedule-test")
        self.patches: list[tuple[str, str, Any]] = []

    async def patch(self, resource: Resource, name: str, body: Any, **more: Any) -> Object:
        """Record and send the patch."""
        self.patches.append((resource.kind, more.get("subresource", ""), body))
        return await super().patch(resource, name, body, **more)


class Harness:
    """The API, the controllers under test, and helpers to change and read objects."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        plugins: PluginRegistry | None = None,
        caller: RemoteCaller | None = None,
    ) -> None:
        self.client = LocalClient(registry)
        self.controllers_client = CountingClient(registry)
        self.informers = Informers(self.controllers_client)
        self.types = FederatedTypes(self.informers, from_config)
        self.recorder = EventRecorder(self.client)
        self.journal = MemoryJournal()
        self.schedule: ScheduleController = ScheduleController(
            self._host(self.controllers_client, clock),
            self.journal,
            Engine(plugins or load_plugins(), monotonic=clock.monotonic),
            decision_chain(),
            options=ScheduleOptions(workers=2, plugin_retry_s=0.05, reports_wait_s=0.05),
            caller=caller,
        )
        # The next controller in the pipeline; without policies it only advances the pending controllers.
        self.override = OverrideController(self._host(self.client, clock))

    def _host(self, client: LocalClient, clock: Clock) -> Host:
        return wire_host(client, clock, informers=self.informers, types=self.types, recorder=self.recorder)

    async def cluster(self, name: str, *, ready: bool = True, joined: bool = True, **spec: Any) -> None:
        """Add a member; `labels`, `taints`, `cpu` (free cores)."""
        cpu = spec.get("cpu", "100")
        await self.client.create(
            FEDERATED_CLUSTERS,
            {
                "apiVersion": API_VERSION,
                "kind": "FederatedCluster",
                "metadata": {"name": name, "labels": spec.get("labels", {})},
                "spec": {"apiEndpoint": "https://x", "secretRef": {"name": name}, "taints": spec.get("taints", [])},
            },
        )
        await self.cluster_status(name, ready=ready, joined=joined, cpu=cpu)

    async def cluster_status(self, name: str, *, ready: bool = True, joined: bool = True, cpu: str = "100") -> None:
        """Set the member's report."""
        now = "2026-01-01T00:00:00Z"
        status = {
            "conditions": [
                {
                    "type": type_,
                    "status": "True" if ok else "False",
                    "reason": "Test",
                    "message": "",
                    "lastProbeTime": now,
                    "lastTransitionTime": now,
                }
                for type_, ok in (("Joined", joined), ("Ready", ready))
            ],
            "apiResourceTypes": SERVED,
            "resources": {"allocatable": {"cpu": "100", "memory": "1Ti"}, "available": {"cpu": cpu, "memory": "1Ti"}},
        }
        await self.patch(FEDERATED_CLUSTERS, name, {"status": status}, subresource="status")

    async def policy(self, name: str, namespace: str = "default", **spec: Any) -> None:
        """Add a policy; cluster-wide with namespace ""."""
        resource = PROPAGATION_POLICIES if namespace else CLUSTER_PROPAGATION_POLICIES
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        body = {"schedulingMode": "Duplicate", **spec}
        await self.client.create(
            resource, {"apiVersion": API_VERSION, "kind": resource.kind, "metadata": metadata, "spec": body}
        )

    async def profile(self, name: str, **spec: Any) -> None:
        """Add a SchedulingProfile."""
        await self.client.create(
            SCHEDULING_PROFILES,
            {"apiVersion": API_VERSION, "kind": "SchedulingProfile", "metadata": {"name": name}, "spec": spec},
        )

    async def deployment(
        self,
        name: str = "web",
        *,
        replicas: int = 6,
        policy: str = "",
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> None:
        """Add the federated object of a Deployment, as the federate controller would."""
        pending = json.dumps([[names.GLOBAL_SCHEDULER], [names.OVERRIDE_CONTROLLER]])
        metadata: Object = {
            "name": f"{name}-deployments.apps",
            "namespace": "default",
            "labels": {names.PROPAGATION_POLICY_LABEL: policy} if policy else {},
            "annotations": {names.PENDING_CONTROLLERS: pending, **(annotations or {})},
        }
        await self.client.create(
            FEDERATED_OBJECTS,
            {
                "apiVersion": API_VERSION,
                "kind": "FederatedObject",
                "metadata": metadata,
                "spec": {"template": a_deployment(name, replicas, labels or {})},
            },
        )

    async def scale(self, name: str, replicas: int) -> None:
        """Change the template as the federate controller does, which makes all controllers pending."""
        pending = json.dumps([[names.GLOBAL_SCHEDULER], [names.OVERRIDE_CONTROLLER]])
        await self.patch_object(
            name,
            {
                "metadata": {"annotations": {names.PENDING_CONTROLLERS: pending}},
                "spec": {"template": {"spec": {"replicas": replicas}}},
            },
        )

    async def patch_object(self, name: str, body: Object) -> None:
        """Patch a federated object."""
        await self.patch(FEDERATED_OBJECTS, f"{name}-deployments.apps", body, namespace="default")

    async def patch(self, resource: Resource, name: str, body: Object, **where: Any) -> None:
        """Merge-patch any object."""
        await self.client.patch(resource, name, body, patch_type=PatchType.MERGE, **where)

    async def get(self, name: str = "web") -> Object:
        """Return the stored federated object."""
        return await self.client.get(FEDERATED_OBJECTS, f"{name}-deployments.apps", "default")

    async def placed(self, name: str = "web") -> dict[str, int | None]:
        """Return cluster → replicas as stored."""
        return placements_of(await self.get(name))

    async def until(self, read: Callable[[], Any], what: str = "") -> Any:
        """Run the controllers until the coroutine function returns a true value; fail after a timeout."""
        deadline = asyncio.get_running_loop().time() + _TIMEOUT_S
        while not (result := await read()):
            assert asyncio.get_running_loop().time() < deadline, f"never happened: {what or read}; {await self._dump()}"
            await asyncio.sleep(0)
        return result

    async def becomes(self, expected: dict[str, int | None], name: str = "web") -> Object:
        """Wait until the object is placed like this, and return it."""

        async def read() -> Any:
            federated = await self.get(name)
            return federated if placements_of(federated) == expected else None

        found: Object = await self.until(read, f"{name} placed as {expected}")
        return found

    async def condition(self, status: str, reason: str = "", name: str = "web") -> Object:
        """Wait for the condition Scheduled, and return it."""

        async def read() -> Any:
            for condition in ((await self.get(name)).get("status") or {}).get("conditions") or ():
                if condition["type"] == "Scheduled" and condition["status"] == status:
                    return condition if not reason or condition["reason"] == reason else None
            return None

        found: Object = await self.until(read, f"Scheduled={status} {reason}")
        return found

    async def scheduler_done(self, name: str = "web") -> Object:
        """Wait until the scheduler is no longer pending, and return the object."""

        async def read() -> Any:
            federated = await self.get(name)
            return None if names.GLOBAL_SCHEDULER in pending_of(federated) else federated

        found: Object = await self.until(read, "the scheduler is done")
        return found

    async def idle(self) -> None:
        """Wait until all events are delivered and the queue is idle."""
        for _ in range(50):
            await asyncio.sleep(0)
        await self.schedule.controller.wait_idle()
        for _ in range(50):
            await asyncio.sleep(0)
        await self.schedule.controller.wait_idle()

    async def journaled(self, name: str = "web", limit: int = 20) -> list[DecisionRecord]:
        """Return the decisions, newest first."""
        return await self.journal.query(DecisionFilter(name=name), limit=limit)

    async def events(self) -> list[tuple[str, str, str]]:
        """Return (type, reason, message) of the events about the federated objects."""
        await self.recorder.wait_idle()
        found = (await self.client.list(EVENTS, "default")).items
        return [(event["type"], event["reason"], event["message"]) for event in found]

    def writes(self) -> int:
        """Return how many patches the controller has sent."""
        return len(self.controllers_client.patches)

    async def _dump(self) -> str:
        objects = (await self.client.list(FEDERATED_OBJECTS)).items
        return json.dumps([{"spec": o["spec"].get("placements"), "status": o.get("status")} for o in objects])


def a_deployment(name: str, replicas: int, labels: dict[str, str]) -> Object:
    """Return a Deployment's template."""
    container = {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": labels, "generation": 1},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
    }


def placements_of(federated: Object) -> dict[str, int | None]:
    """Return cluster → replicas of the scheduler's entries."""
    placed: dict[str, int | None] = {}
    for entry in federated["spec"].get("placements") or ():
        if entry["controller"] == names.GLOBAL_SCHEDULER:
            placed = {item["cluster"]: None for item in entry["placement"]}
    for entry in federated["spec"].get("overrides") or ():
        if entry["controller"] == names.GLOBAL_SCHEDULER:
            for item in entry["clusters"]:
                assert item["patches"][0]["path"] == "/spec/replicas"
                placed[item["cluster"]] = item["patches"][0]["value"]
    return placed


def pending_of(federated: Object) -> str:
    """Return the text of the pipeline annotation."""
    return str(federated["metadata"]["annotations"].get(names.PENDING_CONTROLLERS))


@asynccontextmanager
async def schedule_harness(
    plugins: PluginRegistry | None = None, caller: RemoteCaller | None = None, clock: Clock | None = None
) -> AsyncIterator[Harness]:
    """Run a harness with the shipped federated types and the namespace default; in real time without a clock."""
    clock = clock or SystemClock()
    store = await a_host_store(clock)
    registry = Registry(store, clock=clock, options=HOST_REGISTRY)
    tasks = [asyncio.create_task(store.run())]
    try:
        await registry.start()
        harness = Harness(registry, clock, plugins, caller)
        loops = (harness.informers.run, harness.recorder.run, harness.schedule.run, harness.override.run)
        tasks += [asyncio.create_task(loop()) for loop in loops]
        yield harness
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
