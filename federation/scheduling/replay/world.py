"""The world of recorded decisions: everything that they depend on besides their objects, at one time.

It has the contents of the schedule controller's caches, and is updated entry by entry. An invalid object leaves the
version before it in force, as in the controller.
"""

from collections.abc import Mapping
from typing import Any

from federation.api.federatedtype import FederatedType, from_config
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    FEDERATED_TYPE_CONFIGS,
    PROJECTS,
    PROPAGATION_POLICIES,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.resources import NAMESPACES, GroupKind, Object, Resource, group_kind_of
from federation.apimachinery.selectors import SelectorError
from federation.scheduling.annotationswitch import AnnotationPolicy
from federation.scheduling.chain import Chain
from federation.scheduling.engine import Engine
from federation.scheduling.framework.assumed import AssumedReplicas, Changes, DisplacedCounts, Request
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.policyspec import PolicyRef, compile_policy
from federation.scheduling.replay.logentries import AssumedChange, ClusterPlaces, Header, WorldChange, restored
from federation.scheduling.replay.projection import RECORDED, name_of
from federation.scheduling.triggers import TriggerSource
from federation.scheduling.webhooks.configuration import WebhookOptions, decisive_hash
from federation.scheduling.webhooks.factory import admit, with_webhooks
from federation.scheduling.world import World

_WorldKey = tuple[Resource, str, str]


class ReplayWorld(World):
    """The world from the beginning of a segment on."""

    def __init__(self, header: Header, installed: PluginRegistry, chain: Chain) -> None:
        units = UnitOptions(counts_cpu_and_memory=header.counts_cpu_and_memory, toleration_s=header.toleration_s)
        super().__init__(
            chain.reads,
            options=units,
            annotation_policy=AnnotationPolicy(is_allowed=header.allows_annotations),
            triggers=TriggerSource(as_kubeadmiral=header.as_kubeadmiral),
        )
        self.chain = chain
        self.engine = Engine(installed)
        self.assumed = AssumedReplicas({}, DisplacedCounts(), 0)
        self.places = ClusterPlaces()
        self.objects: dict[_WorldKey, Object] = {}
        self._installed = installed
        self._webhooks: dict[str, WebhookOptions] = {}
        self._types: dict[GroupKind, FederatedType] | None = None
        self.kinds: Mapping[str, Resource] = {name_of(each): each for each in (*RECORDED, *chain.kinds)}
        """The recorded kinds, by their names in records."""

    def type_of(self, template: Mapping[str, Any]) -> FederatedType | None:
        """Return the federated type of a template."""
        if self._types is None:
            self._types = {}
            configs = [obj for key, obj in self.objects.items() if key[0] == FEDERATED_TYPE_CONFIGS]
            for config in sorted(configs, key=lambda each: str(each["metadata"]["name"])):
                try:
                    type_ = from_config(config)
                except (ValueError, KeyError, TypeError):
                    continue
                self._types.setdefault(type_.resource.group_kind, type_)
        return self._types.get(group_kind_of(template))

    def assume(self, change: AssumedChange) -> None:
        """Take over changed assumed replicas."""
        if change.is_whole:
            self.assumed = AssumedReplicas({}, DisplacedCounts(), 0)
        self.places.names += change.names
        for request, groups in change.changes:
            self.add_assumed(
                request,
                [(name, difference) for difference, distances in groups for name in self.places.clusters(distances)],
            )

    def add_assumed(self, request: Request, changes: Changes) -> None:
        """Add replicas of a request, or take them away.

        The mapping itself changes, unlike in a control plane, because no decision is read after the next one began.
        """
        assumed: dict[str, dict[Request, int]] = self.assumed  # type: ignore[assignment]  # all of them made here
        for name, difference in changes:
            of_cluster = assumed.get(name)
            if of_cluster is None:
                of_cluster = assumed[name] = {}
            if left := of_cluster.get(request, 0) + difference:
                of_cluster[request] = left
            else:
                of_cluster.pop(request, None)
                if not of_cluster:
                    del assumed[name]
        self.assumed.displaced.record(request, changes)
        self.assumed.version = self.assumed.displaced.version

    def apply(self, change: WorldChange) -> None:
        """Take over a changed object."""
        resource = self.kinds.get(change.kind)
        if resource is None:
            return  # a kind of a later version
        key = (resource, change.namespace, change.name)
        if change.whole is None and change.patch is None:
            self.put(key, None)
        else:
            self.put(key, restored(self.objects.get(key), change.whole, change.patch))

    def put(self, key: _WorldKey, obj: Object | None) -> None:
        """Add, replace or remove (None) an object."""
        resource, namespace, name = key
        before = self.objects.pop(key, None)
        if obj is not None:
            self.objects[key] = obj
        if resource == FEDERATED_CLUSTERS:
            if obj is None:
                self.clusters.remove(name)
            else:
                self.clusters.update(obj)
        elif resource in (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES):
            self._put_policy(PolicyRef(namespace, name), obj)
        elif resource == FEDERATED_TYPE_CONFIGS:
            self._types = None
        elif resource == SCHEDULING_PROFILES:
            self.profiles.remove(name) if obj is None else self.profiles.put(obj)
        elif resource == NAMESPACES:
            self.annotation_policy.remove(name) if obj is None else self.annotation_policy.put(obj)
        elif resource == SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS:
            self._put_webhook(name, obj)
        elif resource == FEDERATED_RESOURCE_QUOTAS:
            self.quotas.remove(namespace, name) if obj is None else self.quotas.put(obj)
        elif resource == PROJECTS:
            self.scoped.projects.remove(name) if obj is None else self.scoped.projects.put(obj)
        elif (index := self.indexes.get(resource)) is not None:
            if before is not None:
                index.remove(before)
            if obj is not None:
                index.put(obj)

    def _put_policy(self, ref: PolicyRef, obj: Object | None) -> None:
        if obj is None:
            self.policies.remove(ref)
            return
        try:
            self.policies.put(compile_policy(obj))
        except (SelectorError, ValueError, TypeError):
            return  # the version before it stays in force

    def _put_webhook(self, name: str, obj: Object | None) -> None:
        self._webhooks.pop(name, None)
        options, problem, decisive = None, "", ""
        if obj is not None:
            options, problem = admit(self._installed, obj)
            if options is not None:
                self._webhooks[name] = options
            decisive = "" if problem else decisive_hash(obj)
        self.engine.use(with_webhooks(self._installed, self._webhooks.values()))
        self.profiles.put_plugin(name, decisive, options.unit_fields if options is not None else frozenset())
