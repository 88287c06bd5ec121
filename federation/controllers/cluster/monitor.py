"""Monitor one member's health, resources, API and rights, in a task of its own (docs/reference/clusters.md).

A probe requests /readyz, or /healthz where a member has no /readyz. Watch events count as signs of life. The resources
of a healthy member are summed event by event; its API is discovered and our rights are checked about once a minute.
`planning/clusters/probes.py` decides what a probe says, `health.py` when to probe and what is published: a change of
health must last, a first observation counts at once. Between probes changed resources are published at most every few
seconds. A monitor lives while its cluster is joined; nothing that a member does makes it raise.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ConfigurationError,
    FederationError,
    Invalid,
    NotFound,
    RequestEntityTooLarge,
)
from federation.apimachinery.listening import Presence
from federation.apimachinery.resources import NODES, Object, Resource
from federation.client.client import Client
from federation.controllers.cluster.apidiscovery import discover
from federation.controllers.cluster.devicewatch import DeviceWatch
from federation.controllers.cluster.discoveryschedule import DiscoverySchedule
from federation.controllers.cluster.names import (
    EVENT_CLUSTER_NOT_READY,
    EVENT_CLUSTER_READY,
    EVENT_IDENTITY_MISMATCH,
    EVENT_MALFORMED_OBJECTS,
    REASON_CLUSTER_API_DISCOVERY_FAILED,
    REASON_CLUSTER_LIMIT_EXCEEDED,
    REASON_CLUSTER_RESOURCE_COLLECTION_FAILED,
)
from federation.controllers.cluster.rightscheck import RightsCheck
from federation.controllers.cluster.statuswriter import ConditionWanted, Publisher, health_conditions, published_health
from federation.planning.clusters import health
from federation.planning.clusters.clusterresources import Collector
from federation.planning.clusters.health import Cadence, Damping, HealthState, Observation, Pending
from federation.planning.clusters.probes import Answer, judge
from federation.planning.clusters.region import region_of
from federation.runtime.events import NORMAL, WARNING, Recorder
from federation.runtime.informer import Informer
from federation.runtime.members import Members

_MESSAGE_MAX = 500
_READYZ, _HEALTHZ = "/readyz", "/healthz"
_AWAY_SHARE = 1 / 3
"""The share of a probe's deadline in which this process stood still that makes a silence say nothing."""


@dataclass(frozen=True, slots=True)
class MonitorOptions:
    """Intervals and deadlines of one member's monitor."""

    version: str = ""
    """Of the control plane, for messages about rights that an older one did not need."""
    cadence: Cadence = field(default_factory=Cadence)
    damping: Damping = field(default_factory=Damping)
    discovery_period_s: float = 60.0
    """Between two discoveries of the member's API, and between two checks of our rights."""
    definition_timeout_s: float = 30.0
    """How long each probe discovers the API again until it has the types of a definition that we propagated."""
    resources_interval_s: float = 5.0
    """Between two publications of changed resources."""
    caches_timeout_s: float = 5.0
    """How long a first probe waits for the member's nodes and pods."""


class Monitor:
    """Monitors one joined member until cancelled."""

    def __init__(
        self,
        name: str,
        members: Members,
        collector: Collector,
        publisher: Publisher,
        recorder: Recorder,
        rights: RightsCheck,
        clock: Clock,
        options: MonitorOptions,
        presence: Presence,
    ) -> None:
        self._name = name
        self._members = members
        self._collector = collector
        self._publisher = publisher
        self._recorder = recorder
        self._rights = rights
        self._devices = DeviceWatch(name, members, collector, rights.types, self._resources_changed)
        self._authorized: ConditionWanted | None = None
        self._clock = clock
        self._options = options
        self._presence = presence
        self._path = _READYZ
        self._pending: Pending | None = None
        self._published: HealthState | None = None
        self._has_succeeded = False
        self._probed_s = float("-inf")
        self._discovery = DiscoverySchedule(
            clock,
            period_s=options.discovery_period_s,
            retry_s=options.cadence.period_s,
            definition_timeout_s=options.definition_timeout_s,
        )
        self._resources_s = float("-inf")
        self._requested_s = float("inf")
        self._is_dirty = False
        self._sum: Object | None = None
        self._reported: tuple[Object, str] | None = None  # the resources published last, and the cluster's revision
        self._refused: dict[str, Any] = {}
        self._refusal = ""
        self._malformed: list[str] = []
        self._sleeper: asyncio.Future[None] | None = None

    def saw(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Apply a change of a node, or of a pod without a node."""
        metadata = (new if new is not None else old or {})["metadata"]
        if resource == NODES:
            self._collector.set_node(metadata["name"], new)
        else:
            self._collector.set_pod((metadata.get("namespace"), metadata["name"]), new)
        self._resources_changed()

    def saw_running(self, pod: Object | None, change: int) -> None:
        """Count a pod that begins or ceases to use a node; without a pod, all are counted again."""
        if pod is None:
            self._collector.reset_counted()
        else:
            self._collector.count_pod(pod, change)
        self._resources_changed()

    def _resources_changed(self) -> None:
        self._sum = None
        if not self._is_dirty:
            self._is_dirty = True
            self._wake()

    def saw_definition(self, old: Object | None, new: Object | None) -> None:
        """Discover the member's API soon if its copy of a CustomResourceDefinition begins or ends to serve types."""
        if self._discovery.saw_definition(old, new):
            self.probe_soon()

    def wants_kind(self, resource: Resource) -> None:
        """Discover the member's API soon for a kind that is federated from now on, unless it is known."""
        if self._discovery.wants(resource):
            self.probe_soon()

    def saw_kind(self, resource: Resource) -> None:
        """Discover the member's API soon if it answers for a resource that the last discovery lacks."""
        informer = self._members.informer(self._name, resource)
        if informer is not None and informer.server.is_served and self._discovery.saw_kind(resource):
            self.probe_soon()

    def suspect(self) -> None:
        """Probe a healthy member soon: a connection to it failed or broke. Probes keep a minimum interval."""
        if self._published is None or not self._published.is_ready:
            return
        due_s = self._probed_s + self._options.cadence.recheck_s
        if due_s < self._requested_s:
            self._requested_s = due_s
            self._wake()

    def probe_soon(self) -> None:
        """Probe without waiting for the period to end."""
        self._requested_s = float("-inf")
        self._wake()

    def check_rights_soon(self) -> None:
        """Check our rights, and probe, without waiting for the period to end."""
        self._rights.expire()
        self.probe_soon()

    async def run(self) -> None:
        """Probe and publish until cancelled."""
        self._members.ensure_capacity_informers(self._name)
        while True:
            now_s, due_s = self._clock.monotonic(), self._probe_due_s
            if now_s >= due_s:
                self._requested_s = float("inf")
                await self._probe()
                if due_s > float("-inf"):
                    self._members.record_probe(self._probed_s - due_s)
            elif self._is_dirty and now_s >= self._resources_due_s:
                await self._publish_resources()
            wait_until_s = self._probe_due_s
            if self._is_dirty:
                wait_until_s = min(wait_until_s, self._resources_due_s)
            await self._sleep(wait_until_s - self._clock.monotonic())

    @property
    def _probe_due_s(self) -> float:
        cadence = self._options.cadence
        due_s = health.next_probe_s(self._published, self._pending, self._probed_s, self._answered_s, cadence)
        if self._discovery.is_awaiting:
            due_s = min(due_s, self._probed_s + cadence.unready_period_s)
        return min(due_s, self._requested_s)

    @property
    def _answered_s(self) -> float:
        """The time of the member's last answer or watch event."""
        breaker = self._members.breaker(self._name)
        return breaker.answered_s if breaker is not None else float("-inf")

    @property
    def _resources_due_s(self) -> float:
        return self._resources_s + self._options.resources_interval_s

    async def _sleep(self, delay_s: float) -> None:
        """Sleep until the delay has passed or the monitor is woken."""
        if delay_s <= 0:
            await asyncio.sleep(0)
            return
        self._sleeper = asyncio.ensure_future(self._clock.sleep(delay_s))
        try:
            await asyncio.wait((self._sleeper,))
        finally:
            self._sleeper.cancel()
            self._sleeper = None

    def _wake(self) -> None:
        if self._sleeper is not None:
            self._sleeper.cancel()

    async def _probe(self) -> None:
        """Probe once and publish the result."""
        observed, more = await self._observe()
        if observed.state.is_ready and not self._has_succeeded:
            observed, self._has_succeeded = replace(observed, is_first_success=True), True
        cluster = self._publisher.cluster(self._name)
        published = self._published or (published_health(cluster) if cluster is not None else None)
        state, self._pending = health.damp(published, self._pending, observed, self._options.damping)
        is_first, self._published, self._probed_s = self._published is None, state, observed.ended_s
        is_change = published is None or not published.is_same(state)
        if is_change or is_first:
            self._members.record_health(self._name, state.ready, is_change=is_change)
        if is_change and cluster is not None:
            self._report(cluster, state, is_first=published is None)
        await self._publish(more)

    def _report(self, cluster: Object, after: HealthState, *, is_first: bool) -> None:
        """Emit an event for a change of the published health."""
        if after.ready_reason == names.REASON_IDENTITY_MISMATCH:
            self._recorder.event(cluster, WARNING, EVENT_IDENTITY_MISMATCH, after.message)
        elif not is_first and after.is_ready:
            self._recorder.event(cluster, NORMAL, EVENT_CLUSTER_READY, after.message)
        elif not is_first:
            self._recorder.event(cluster, WARNING, EVENT_CLUSTER_NOT_READY, after.message)

    async def _publish_resources(self) -> None:
        """Publish resources that changed between two probes, unless the caches are incomplete."""
        self._is_dirty = False
        if (resources := self._resources()) is not None:
            await self._publish(self._capacity(self._publisher.cluster(self._name) or {}, resources))

    async def _publish(self, more: Mapping[str, Any]) -> None:
        if "resources" in more:
            self._resources_s = self._clock.monotonic()
            self._is_dirty = False
        if self._published is None:
            return
        conditions = health_conditions(self._published)
        if self._authorized is not None:
            conditions.append(self._authorized)
        try:
            is_written = await self._publisher.publish(self._name, conditions, more)
            if "resources" in more and not is_written:  # what was written is compared once more
                self._reported = more["resources"], _revision_of(self._publisher.cluster(self._name) or {})
        except (Invalid, RequestEntityTooLarge) as error:
            # The member's own names and numbers make the report unusable: only that is published, and the loop goes on.
            self._refused = dict(more)
            self._refusal = f"the member's report cannot be stored: {error.message[:_MESSAGE_MAX]}"
            self._discovery.expire()
            self._published = self._not_storable()
            self._members.record_health(self._name, self._published.ready, is_change=True)
            await self._publisher.publish(self._name, health_conditions(self._published))

    def _not_storable(self) -> HealthState:
        return health.not_usable(REASON_CLUSTER_RESOURCE_COLLECTION_FAILED, self._refusal)

    async def _observe(self) -> tuple[Observation, dict[str, Any]]:
        """Return one observation, and the status fields to publish with it.

        A healthy member is then queried with many requests. Probes continue meanwhile, and the loss of the member ends
        the queries.
        """
        observed, member, uid = await self._ask()
        if member is None:
            return observed, {}
        if not self._is_query_due:  # nearly always: then there is nothing to wait for, and no task is needed
            state, more = await self._look_closer(member, uid)
            return replace(observed, state=state), more
        looking = asyncio.ensure_future(self._look_closer(member, uid))
        try:
            while True:
                patience = asyncio.ensure_future(self._clock.sleep(self._options.cadence.period_s))
                try:
                    await asyncio.wait((looking, patience), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    patience.cancel()
                if looking.done():
                    state, more = looking.result()
                    return replace(observed, state=state), more
                observed, member, _ = await self._ask()
                if member is None:
                    return observed, {}
        finally:
            looking.cancel()

    @property
    def _is_query_due(self) -> bool:
        """Whether a closer look waits for the member."""
        return self._rights.is_due or self._discovery.is_due or not self._has_caches

    async def _ask(self) -> tuple[Observation, Client | None, str]:
        """Return the observation of one request, and the client and the uid of a healthy member."""
        began_s, away_before_s = self._clock.monotonic(), self._presence.away_s
        seen, member, uid = await self._request_health()
        away_s = self._presence.away_s
        was_away = away_s - away_before_s >= self._options.cadence.timeout_s * _AWAY_SHARE
        state = judge(self._name, self._path, seen, was_away=was_away)
        ended_s = self._clock.monotonic()
        observed = Observation(state, began_s, ended_s, self._answered_s, away_before_s=away_before_s, away_s=away_s)
        return observed, member if state.is_ready else None, uid

    async def _request_health(self) -> tuple[Answer | FederationError, Client | None, str]:
        """Return what a probe saw, and the client and the uid of a member that answers as it should."""
        try:
            member = self._members.client(self._name)
        except NotFound as error:  # its endpoint or Secret cannot be used
            return ConfigurationError(error.message), None, ""
        try:
            answer = Answer(*await self._get_health(member))
            return answer, member, await self._members.check_identity(self._name)
        except (ApiError, ClusterError) as error:
            return error, None, ""

    async def _get_health(self, member: Client) -> tuple[int, bytes]:
        """Request /readyz; switch to /healthz where a member has no /readyz or allows only /healthz."""
        timeout_s = self._options.cadence.timeout_s
        code, body = await member.raw("GET", self._path, timeout_s=timeout_s)
        if code in (403, 404):
            self._path = _HEALTHZ if self._path == _READYZ else _READYZ
            code, body = await member.raw("GET", self._path, timeout_s=timeout_s)
        return code, body

    def _report_malformed(self) -> None:
        """Emit an event when the member begins to send items that no cache takes: their last states stay."""
        found, known = self._members.malformed(self._name), self._malformed
        self._malformed = found
        cluster = self._publisher.cluster(self._name)
        if found and found != known and cluster is not None:
            text = f"the member sends {', '.join(found)} that are not Kubernetes objects: their last known states count"
            self._recorder.event(cluster, WARNING, EVENT_MALFORMED_OBJECTS, text)

    async def _look_closer(self, member: Client, uid: str) -> tuple[HealthState, dict[str, Any]]:
        """Collect rights, resources and API types of a healthy member, which is not usable before its first ones."""
        self._authorized = await self._rights.condition(member)
        self._report_malformed()
        more: dict[str, Any] = {}
        cluster = self._publisher.cluster(self._name) or {}
        status = cluster.get("status") or {}
        if uid and not status.get("clusterUid"):
            more["clusterUid"] = uid  # it joined before uids were recorded
        await self._wait_for_caches()
        if exceeded := self._members.limit_exceeded(self._name):
            return health.not_usable(REASON_CLUSTER_LIMIT_EXCEEDED, exceeded), more
        is_reported = bool(status.get("resources"))
        resources = self._resources()
        is_due = self._clock.monotonic() >= self._resources_due_s
        is_due = is_due and self._reported != (resources, _revision_of(cluster))
        if resources is not None and (self._refused or is_due):
            more |= self._capacity(cluster, resources)
        if resources is None and not is_reported:
            text = "the member's nodes and pods cannot be listed (yet)"
            return health.not_usable(REASON_CLUSTER_RESOURCE_COLLECTION_FAILED, text), more
        known = status.get("apiResourceTypes") or []
        if self._discovery.is_due:
            self._discovery.begin()
            try:
                found = await discover(member, known)
            except (ClusterError, ApiError) as error:
                if not known:
                    return health.not_usable(REASON_CLUSTER_API_DISCOVERY_FAILED, str(error)), more
                self._discovery.record_failure()
            else:
                more["apiResourceTypes"] = found.types
                if found.kubernetes_version:
                    more["kubernetesVersion"] = found.kubernetes_version
                self._discovery.record(found.types, is_partial=bool(found.failed))
        self._devices.ensure(self._discovery.served)
        if self._refused and all(more.get(key) == value for key, value in self._refused.items()):
            self._discovery.expire()
            return self._not_storable(), {}
        self._refused = {}
        return health.healthy(self._path), more

    @property
    def _has_caches(self) -> bool:
        informers = self._members.capacity(self._name)
        return informers is None or informers.have_synced

    async def _wait_for_caches(self) -> None:
        """Wait for the first complete lists of nodes and pods, but not for long."""
        informers = self._members.capacity(self._name)
        if informers is None or informers.have_synced:
            return
        synced = asyncio.ensure_future(_wait_synced(informers))
        patience = asyncio.ensure_future(self._clock.sleep(self._options.caches_timeout_s))
        try:
            await asyncio.wait((synced, patience), return_when=asyncio.FIRST_COMPLETED)
        finally:
            synced.cancel()
            patience.cancel()

    @staticmethod
    def _capacity(cluster: Object, resources: Object) -> Object:
        """Return the status fields that follow from the member's nodes."""
        return {"resources": resources, "region": region_of(cluster, resources) or None}

    def _resources(self) -> Object | None:
        """Return the summed resources, None while the caches are not complete.

        Summing up a large cluster takes milliseconds: too long for each probe of an idle one.
        """
        informers = self._members.capacity(self._name)
        if informers is None or not informers.have_synced:
            return None
        if self._sum is None:
            self._sum = self._collector.resources().to_status()
        return self._sum


def _revision_of(cluster: Object) -> str:
    return str((cluster.get("metadata") or {}).get("resourceVersion", ""))


async def _wait_synced(informers: Iterable[Informer]) -> None:
    # A task: cancelling the future of `gather` itself leaves an exception unread, and asyncio logs that.
    await asyncio.gather(*(informer.wait_synced() for informer in informers))
