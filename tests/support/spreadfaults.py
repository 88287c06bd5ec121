"""A cluster with three instances of the WorkloadSpread service, on a virtual clock, in which everything can go wrong.

`History(seed)` has one ReplicaSet whose pods a driver creates and deletes as the workload controller does, and binds to
nodes. Faults by chance: stalls of up to 30 s before and after each request and review, answers that are lost, conflicts,
watches that deliver nothing, restarts of instances, deletions that another webhook refuses, creations that are given up
after 10 s and tried again under another name. Each event of a pod is checked against the limits.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Mapping
from typing import Any

from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import ApiError, ClusterError, ClusterUnreachable, Conflict, WebhookFailed
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import (
    NODES,
    PODS,
    REPLICA_SETS,
    VALIDATING_WEBHOOKS,
    Object,
)
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions, own_user
from federation.client.client import Client, Request, Watch, WatchEventType
from federation.client.local import LocalClient, LocalTransport
from federation.features.workloadspread.incluster import configurations
from federation.features.workloadspread.incluster.service import SpreadService
from federation.features.workloadspread.rules.ledger import parse_match
from federation.planning.automigration.podanalysis import is_live
from tests.support.memberspreads import a_spread, a_subset
from tests.support.simulatedmember import a_template, a_workload, an_object

INSTANCES, STALL_S_MAX, GIVEN_UP_S = 3, 30.0, 10.0
STEP_S = 0.5
RATES = (0.02, 0.05, 0.1, 0.2)
"""How often things go wrong, by history."""
REFUSALS = "refusals"


class Faults:
    """The dice of one history; `rate` is 0 when the faults are over."""

    def __init__(self, rng: random.Random, clock: ManualClock, rate: float) -> None:
        self.rng, self.clock, self.rate = rng, clock, rate

    def happens(self, share: float = 1.0) -> bool:
        return self.rng.random() < self.rate * share

    async def stall(self, share: float = 1.0) -> None:
        """Wait for a short or a long time, or not at all."""
        if self.happens(share):
            await self.clock.sleep(self.rng.choice((0.05, 0.5, 3.0, STALL_S_MAX)) * self.rng.random())


class FaultyLine(LocalTransport):
    """The connection of one instance to the API server."""

    def __init__(self, registry: Registry, faults: Faults) -> None:
        super().__init__(registry)
        self._faults = faults
        self.blind_until_s = 0.0

    async def request(self, request: Request) -> Object:
        faults, is_status = self._faults, request.subresource == "status"
        await faults.stall(0.5)
        if is_status and faults.happens(0.5):
            raise Conflict("another writer was faster")
        answer = await super().request(request)
        await faults.stall(0.5)
        if faults.happens(0.2):
            raise ClusterUnreachable("the answer is lost")
        return answer

    async def stream(self, request: Request) -> Watch:  # type: ignore[override]  # a generator is a Watch
        async for batch in LocalTransport.stream(self, request):
            clock = self._faults.clock
            if batch and self._faults.happens(0.05):
                self.blind_until_s = clock.monotonic() + self._faults.rng.uniform(0, 90)
            if batch and request.resource is PODS and self._faults.happens(0.2):  # pods come later than the rest
                await clock.sleep(self._faults.rng.uniform(0, 5))
            while clock.monotonic() < self.blind_until_s:
                await clock.sleep(self.blind_until_s - clock.monotonic())
            if batch and self._faults.happens(0.02):
                raise ClusterUnreachable("the watch is lost")
            yield batch


class Instance:
    """One process with the service."""

    def __init__(self, history: "History", number: int) -> None:
        self._history, self._number = history, number
        self.service: SpreadService
        self._task: asyncio.Task[None] | None = None
        self.reviews: set[asyncio.Future[Any]] = set()
        self.start()

    def start(self) -> None:
        history = self._history
        line = FaultyLine(history.registry, history.faults)
        entropy = SeededEntropy(history.rng.randrange(2**30))
        self.service = SpreadService(Client(line), clock=history.clock, cluster=f"i{self._number}", entropy=entropy)
        self._task = asyncio.create_task(self.service.run())

    async def stop(self) -> None:
        for task in [*self.reviews, *([self._task] if self._task is not None else [])]:
            task.cancel()
        await asyncio.gather(*self.reviews, *([self._task] if self._task else []), return_exceptions=True)
        self._task = None

    @property
    def is_running(self) -> bool:
        return self._task is not None


class FaultyNetwork:
    """The way of reviews from the API server to the instances, and the other webhooks."""

    def __init__(self, history: "History") -> None:
        self._history = history

    async def call(self, client_config: Mapping[str, Any], review: Object, *, timeout_s: float) -> Any:
        history, faults, path = self._history, self._history.faults, client_config["service"]["path"]
        if client_config["service"]["name"] == REFUSALS:
            response: Object = {"uid": review["request"]["uid"], "allowed": not faults.happens(0.3)}
            return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
        instance = history.rng.choice(history.instances)
        if not instance.is_running:
            raise WebhookFailed("connection refused")

        async def exchange() -> Any:
            await faults.stall()
            answer = await instance.service.answer(path, review)
            await faults.stall()
            return answer

        answering = asyncio.ensure_future(exchange())
        instance.reviews.add(answering)
        answering.add_done_callback(instance.reviews.discard)
        deadline = asyncio.ensure_future(history.clock.sleep(timeout_s))
        await asyncio.wait((answering, deadline), return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():  # the service goes on and does not know
            raise WebhookFailed("context deadline exceeded")
        deadline.cancel()
        try:
            answer = answering.result()
        except (ApiError, asyncio.CancelledError) as error:
            raise WebhookFailed(str(error)) from error
        await faults.stall(0.3)  # other webhooks, and the store
        return answer


class History:
    """One history; `created` counts the pods that were stored."""

    def __init__(self, seed: int, *, rate: float | None = None) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        rate = self.rng.choice(RATES) if rate is None else rate
        self.clock = ManualClock()
        self.faults = Faults(self.rng, self.clock, rate)
        entropy = SeededEntropy(seed)
        store = MemoryStore(clock=self.clock)
        self.registry = Registry(store, clock=self.clock, entropy=entropy, webhooks=FaultyNetwork(self))
        self.user = LocalClient(self.registry, user_agent="controller")
        self.instances: list[Instance] = []
        self.limits = {"a": self.rng.randrange(1, 8), "b": self.rng.randrange(8)}
        self.has_rest = self.rng.random() < 0.7
        self.pods: dict[str, Object] = {}
        self.created = self.unmatched = 0
        self.violations: list[str] = []
        self._owner: Object = {}
        self._work: set[asyncio.Future[Any]] = set()
        self._creating = 0
        self._ending: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, pods: int) -> None:
        """Create so many pods, stop the faults, and let everything converge."""
        await self.registry.install_crds(configurations.definitions())
        checking = asyncio.create_task(self._check_pods())
        tasks = self._tasks = [asyncio.create_task(self.registry.run()), checking]
        try:
            await self._begin()
            await self._churn(pods)
            await self._end()
        finally:
            for each in self.instances:
                await each.stop()
            for task in [*tasks, *self._work]:
                task.cancel()
            await asyncio.gather(*tasks, *self._work, return_exceptions=True)

    async def _begin(self) -> None:
        for name in ("a", "b", "c"):
            node = an_object(NODES, name, metadata={"labels": {"pool": name}})
            await self.user.create(NODES, node)
        rate, self.faults.rate = self.faults.rate, 0.0
        self.instances = [Instance(self, number) for number in range(INSTANCES)]
        await self.clock.advance(1)
        client = LocalClient(self.registry, user_agent="workloadspread")
        await configurations.install_webhooks(client, _client_config)
        await self.user.create(VALIDATING_WEBHOOKS, _refusals())
        self.faults.rate = rate
        self._owner = await self.user.create(REPLICA_SETS, a_workload(REPLICA_SETS, replicas=1))
        rest = [{"name": "rest"}] if self.has_rest else []
        spread = a_spread(*(a_subset(name, limit) for name, limit in self.limits.items()), *rest, kind="ReplicaSet")
        self._start(self.user.create(WORKLOAD_SPREADS, {**spread, "apiVersion": WORKLOAD_SPREADS.api_version}))

    async def _churn(self, pods: int) -> None:
        rng = self.rng
        while self.created < pods:
            assert not any(task.done() for task in self._tasks), self._tasks
            wanted = rng.randrange(4, 30)
            live = [name for name, pod in self.pods.items() if is_live(pod)]
            for _ in range(min(12, wanted - len(live) - self._creating)):
                self._start(self._create())
            surplus = max(0, len(live) - wanted)
            for name in rng.sample(live, min(len(live), surplus + rng.randrange(3))):
                self._start(self.user.delete(PODS, name, "default"))
            if self.faults.happens(0.1):
                self._start(self._restart(rng.choice(self.instances)))
            for _ in range(rng.randrange(1, 12)):
                await self._pass(STEP_S)

    async def _end(self) -> None:
        self.faults.rate = 0.0
        for _ in range(100):
            await self._pass(2)
        for instance in self.instances:
            if not instance.is_running:
                instance.start()
        for _ in range(60):
            await self._pass(2)

    async def _pass(self, seconds: float) -> None:
        for name, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"] and name not in self._ending:
                self._ending.add(name)
                self._start(self._finish(name))
            if is_live(pod) and not pod["spec"].get("nodeName"):
                match = parse_match(pod)
                node = {"a": "a", "b": "b"}.get(match.subset if match else "", self.rng.choice("abc"))
                await self._bind(name, node)
        await self.clock.advance(seconds)

    async def _finish(self, name: str) -> None:
        """End a pod as a kubelet does."""
        await self.clock.sleep(self.rng.uniform(0, 3))
        await self.user.delete(PODS, name, "default", grace_period_s=0)

    async def _bind(self, name: str, node: str) -> None:
        info = self.registry.kinds.lookup("", "v1", "pods")
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = an_object(PODS, name, target=target) | {"kind": "Binding"}
        options = WriteOptions(user=own_user)
        try:
            await self.registry.create(info, "default", binding, options, name=name, subresource="binding")
        except ApiError:
            return

    async def _create(self) -> None:
        """Create a pod as a controller does, which gives up after some time and creates another one."""
        reference = controller_reference(self._owner, REPLICA_SETS.api_version, REPLICA_SETS.kind)
        metadata = {"name": "", "generateName": "web-", "labels": {"app": "web"}, "ownerReferences": [reference]}
        pod = an_object(PODS, "", metadata=metadata, spec=a_template()["spec"])
        self._creating += 1
        creation = self._start(self.user.create(PODS, pod))
        deadline = asyncio.ensure_future(self.clock.sleep(GIVEN_UP_S))
        await asyncio.wait((creation, deadline), return_when=asyncio.FIRST_COMPLETED)
        deadline.cancel()
        self._creating -= 1

    async def _restart(self, instance: Instance) -> None:
        if instance.is_running:
            await instance.stop()
            await self.clock.sleep(self.rng.uniform(0, 20))
            if not instance.is_running:
                instance.start()

    def _start(self, work: Awaitable[Any]) -> "asyncio.Future[Any]":
        async def attempt() -> None:
            try:
                await work
            except (ApiError, ClusterError):
                return

        task = asyncio.ensure_future(attempt())
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task

    async def _check_pods(self) -> None:
        """Follow the pods, and check the limits at each event."""
        revision = "0"
        while True:
            request = Request("watch", PODS, "default", resource_version=revision)
            async for batch in LocalTransport(self.registry).stream(request):
                for type_, pod in batch:
                    revision = pod["metadata"]["resourceVersion"]
                    if type_ is not WatchEventType.BOOKMARK:
                        self._check(type_, pod)

    def _check(self, type_: WatchEventType, pod: Object) -> None:
        name = pod["metadata"]["name"]
        if type_ is WatchEventType.DELETED:
            self.pods.pop(name, None)
            return
        if type_ is WatchEventType.ADDED:
            self.created += 1
            self.unmatched += parse_match(pod) is None
        self.pods[name] = pod
        for subset, count in self.counts().items():
            if count > self.limits.get(subset, count):
                when = f"seed {self.seed}, {self.clock.monotonic():.2f} s"
                limit = self.limits[subset]
                self.violations.append(f"{when}: {subset} has {count} of {limit} pods after {type_} of {name}")

    def counts(self) -> Counter[str]:
        """Return the number of live pods by subset, "" for none."""
        live = [parse_match(pod) for pod in self.pods.values() if is_live(pod)]
        return Counter(match.subset if match is not None else "" for match in live)

    async def problems(self) -> list[str]:
        """Return what is wrong at rest: pods that are neither matched nor reported, and wrong numbers."""
        (spread,) = (await self.user.list(WORKLOAD_SPREADS, "default")).items
        status, counts, found = spread.get("status") or {}, self.counts(), list(self.violations)
        if (status.get("unmatchedReplicas") or 0) != counts[""]:
            found.append(f"{counts['']} pods have no subset, {status.get('unmatchedReplicas')} are reported")
        entries = [*(status.get("versionedSubsetStatuses") or {}).values()]
        for entry in [status.get("subsetStatuses") or (), *entries]:
            for each in entry:
                name, count = each["name"], counts[each["name"]]
                limit = self.limits.get(name)
                missing = -1 if limit is None else limit - count
                if (each["replicas"], each["missingReplicas"]) != (count, missing):
                    found.append(f"{name} has {count} pods, its status says {each}")
                if each.get("creatingPods") or each.get("deletingPods"):
                    found.append(f"{name} has records at rest: {each}")
        for pod in self.pods.values():
            node = pod["spec"].get("nodeName")
            if is_live(pod) and parse_match(pod) is None and counts[node] < self.limits.get(node, 0):
                found.append(f"{pod['metadata']['name']} in {node} is in no subset, although {node} has a free place")
        return [f"seed {self.seed}: {each}" for each in found]


def _client_config(path: str) -> Object:
    return {"service": {"namespace": "kube-system", "name": "workloadspread", "path": path}}


def _refusals() -> Object:
    webhook = {
        "name": "refusals.example.com",
        "clientConfig": {"service": {"namespace": "kube-system", "name": REFUSALS, "path": "/"}},
        "rules": [{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["pods"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    metadata = {"name": REFUSALS}
    return {
        "apiVersion": VALIDATING_WEBHOOKS.api_version,
        "kind": VALIDATING_WEBHOOKS.kind,
        "metadata": metadata,
        "webhooks": [webhook],
    }
