"""Pods first: a webhook configuration or APIService is created in a cluster after pods of its service are ready there.

The service and the workload behind it are found among the federated objects. An object that exists in the member is
never held, and after `_READY_S_MAX` a new one is created all the same, as it would be in a single cluster. Start times
are kept in memory only: after a restart the wait starts again.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import SERVICES, Object
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberobjects import MemberObjectCache
from federation.delivery.rules import names
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.webhookservices import ServiceName, called_services, has_ready_pods, is_behind
from federation.planning.federatedobject.placements import effective_placement
from federation.runtime.controller import Key
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_KNOWN_S_MAX = 5.0
"""How long a service or workload that no policy delivers may take to appear: manifests are applied one by one."""
_READY_S_MAX = 300.0
"""How long the pods may take to be ready."""
_RECHECK_S = 2.0


class ServiceReadiness:
    """Decides which creations wait for the pods of a service."""

    def __init__(self, host: Host, member_objects: MemberObjectCache, kept: KeptState) -> None:
        self._objects = host.objects
        self._member_objects = member_objects
        self._recorder = host.recorder
        self._presence = host.presence
        self._since_s: dict[Key, dict[str, float]] = kept.by_object({})

    def wait(self, key: Key, federated: Object, cluster: str, desired: Mapping[str, Any]) -> tuple[str, float] | None:
        """Return what a creation waits for and when to look again, None if the object may be created now."""
        now_s = self._presence.present_s
        for service in called_services(desired):
            limit_s = self._patience_s(service, cluster)
            waited_s = now_s - self._since_s.setdefault(key, {}).setdefault(cluster, now_s) if limit_s else 0.0
            if waited_s < limit_s:
                return f"waits for ready pods of {service}", min(_RECHECK_S, limit_s - waited_s)
            if limit_s == _READY_S_MAX:
                text = f'cluster "{cluster}": propagated although no pod of {service} is ready after {limit_s:g} s'
                self._recorder.event(federated, WARNING, names.EVENT_SERVICE_NOT_READY, text)
        self._since_s.get(key, {}).pop(cluster, None)
        if not self._since_s.get(key):
            self._since_s.pop(key, None)
        return None

    def _patience_s(self, service: ServiceName, cluster: str) -> float:
        """Return how long a creation may wait for the service, 0 if its pods are ready or nothing will change that."""
        found = self._objects.of_source(SERVICES.group, SERVICES.kind, service.namespace, service.name)
        if found is None:
            return _KNOWN_S_MAX
        if cluster not in effective_placement(found):
            return 0.0
        template, patience_s = found["spec"]["template"], _KNOWN_S_MAX
        for workload in self._objects.list_namespace(service.namespace):
            type_ = self._objects.type_of(workload)
            if type_ is None or cluster not in effective_placement(workload):
                continue
            source = workload["spec"]["template"]
            if not is_behind(template, source):
                continue
            patience_s = _READY_S_MAX
            member = MemberKey(cluster, type_.resource, service.namespace, source["metadata"]["name"])
            _, live = self._member_objects.observe(member)
            if live is not None and has_ready_pods(type_, live):
                return 0.0
        return patience_s
