"""The objects that decisions depend on, raw and compiled.

An `ObjectSet` holds the objects as read from the API. `CompiledState` has the contents of the controllers' caches:
clusters, policies, profiles, override bindings, types, and an engine with the plugins. Invalid objects are treated as
the controllers treat them, and reported in `problems`.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from federation.api.federatedtype import FederatedType, from_config
from federation.api.resources import (
    CLUSTER_DISRUPTION_BUDGETS,
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    FEDERATED_RESOURCE_QUOTAS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROJECTS,
    PROPAGATION_POLICIES,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.resources import NAMESPACES, GroupKind, Object, Resource, group_kind_of
from federation.apimachinery.selectors import SelectorError
from federation.planning.failover.evictingclusters import EvictingClusters
from federation.planning.failover.pace import PaceOptions
from federation.planning.federatedobject.placements import Name
from federation.planning.overrides.policymatching import Bindings
from federation.planning.waves.policychanges import without_record
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.chain import Chain
from federation.scheduling.engine import Engine
from federation.scheduling.evictions import Evictions
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.hostlimits import Limits
from federation.scheduling.policyspec import PolicyRef, compile_policy
from federation.scheduling.quotas import key_in
from federation.scheduling.relatedworkloads import key_of, to_workload
from federation.scheduling.webhooks.configuration import decisive_hash
from federation.scheduling.webhooks.factory import admit, with_webhooks
from federation.scheduling.whatif.holding import HOLDING, Holding
from federation.scheduling.world import World
from federation.scheduling.worldobjects import ListedObjects, name_of

PROPAGATION = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)
OVERRIDES = (OVERRIDE_POLICIES, CLUSTER_OVERRIDE_POLICIES)
FEDERATED = (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS)
CONTEXT = (
    FEDERATED_CLUSTERS,
    FEDERATED_TYPE_CONFIGS,
    NAMESPACES,
    *PROPAGATION,
    *OVERRIDES,
    SCHEDULING_PROFILES,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
    FEDERATED_RESOURCE_QUOTAS,
    PROJECTS,
)
"""The kinds that decisions about a federated object depend on, besides the object itself and `Chain.kinds`."""

_NO_PACE = PaceOptions(replicas_per_minute=1_000_000_000, namespace_share=1.0)
_UNREAD = "{} cannot be listed, so the plan does not tell what they hold"


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object before and after: `before` is None for a new object, `after` for a deleted one."""

    resource: Resource
    namespace: str
    name: str
    before: Object | None
    after: Object | None

    def __str__(self) -> str:
        return title_of(self.resource, self.namespace, self.name)


def title_of(resource: Resource, namespace: str, name: str) -> str:
    """Return `Deployment web in default`."""
    return f"{resource.kind} {name} in {namespace}" if namespace else f"{resource.kind} {name}"


class ObjectSet:
    """Objects of `CONTEXT`, `FEDERATED` and `HOLDING` by kind and name; `unread` could not be listed."""

    def __init__(self, objects: Mapping[Resource, Iterable[Object]], unread: Collection[Resource] = ()) -> None:
        self.unread = unread
        self._objects: dict[Resource, dict[Name, Object]] = {
            resource: {name_of(obj): obj for obj in listed} for resource, listed in objects.items()
        }

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object, None when there is none."""
        return self._objects.get(resource, {}).get((namespace, name))

    def list(self, resource: Resource) -> list[Object]:
        """Return all objects of the kind."""
        return list(self._objects.get(resource, {}).values())

    @property
    def kinds(self) -> Collection[Resource]:
        """The kinds that were listed."""
        return self._objects.keys()

    def federated(self) -> Iterator[Object]:
        """Yield every federated object."""
        for resource in FEDERATED:
            yield from self._objects.get(resource, {}).values()

    def with_changes(self, changes: Iterable[ObjectChange]) -> "ObjectSet":
        """Return the objects after the changes."""
        changed = ObjectSet({}, self.unread)
        changed._objects = dict(self._objects)
        for change in changes:
            held = changed._objects[change.resource] = dict(changed._objects.get(change.resource, {}))
            held.pop((change.namespace, change.name), None)
            if change.after is not None:
                held[change.namespace, change.name] = change.after
        return changed


@dataclass(frozen=True, slots=True)
class _Listed:
    """The objects of a kind in a plan."""

    objects: ObjectSet
    resource: Resource

    def get(self, namespace: str, name: str) -> Object | None:
        return self.objects.get(self.resource, namespace, name)

    def list(self) -> Sequence[Object]:
        return self.objects.list(self.resource)


class CompiledState(World):
    """Objects compiled for decisions. An invalid change leaves the version of `before` in force."""

    def __init__(
        self,
        objects: ObjectSet,
        before: ObjectSet,
        installed: PluginRegistry,
        chain: Chain,
        now: datetime,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(chain.reads, limits=limits)
        self.chain = chain
        self.problems: list[str] = []
        self.federated = objects.federated
        self.assume_cache = AssumeCache()
        for namespace in objects.list(NAMESPACES):
            self.annotation_policy.put(namespace)
        self.types = federated_types(objects, self.problems)
        self.cluster_objects = {cluster["metadata"]["name"]: cluster for cluster in objects.list(FEDERATED_CLUSTERS)}
        self.holding = Holding({each: objects.list(each) for each in HOLDING}, self.cluster_objects)
        clusters = {cluster["metadata"]["name"]: cluster for cluster in before.list(FEDERATED_CLUSTERS)}
        self.held_before = Holding({each: before.list(each) for each in HOLDING}, clusters).held_before
        """Returns what is held back of an object before the changes."""
        self._foresee(objects, before, now)
        self.problems += [_UNREAD.format(each.plural) for each in before.unread]
        for cluster in self.cluster_objects.values():
            self.clusters.update(cluster)
        for project in objects.list(PROJECTS):
            self.scoped.projects.put(project)
        self._put_policies(objects, before)
        for profile in objects.list(SCHEDULING_PROFILES):
            self.profiles.put(profile)
        for kind, index in self.indexes.items():
            for obj in objects.list(kind):
                if problem := index.put(obj):
                    self.problems.append(f"{kind.kind} {obj['metadata']['name']}: {problem}")
        for quota in objects.list(FEDERATED_RESOURCE_QUOTAS):
            self.quotas.put(quota)
        for federated in objects.federated():
            self.quotas.observe(key_in(federated), federated, self.type_of(federated["spec"]["template"]))
            for accounts in self.accounts:
                accounts.observe(name_of(federated), federated)
        self.workloads.is_active = self.policies.has_workload_rules
        for federated in objects.federated() if self.workloads.is_active else ():
            self.observe(federated)
        self.bindings = Bindings()
        for resource in OVERRIDES:
            for policy in objects.list(resource):
                is_new = before.get(resource, *name_of(policy)) is not policy
                if problem := self.bindings.put(without_record(policy) if is_new else policy):
                    self.problems.append(f"{resource.kind} {policy['metadata']['name']}: {problem}")
        self.engine = Engine(self._plugins(objects, installed))

    def type_of(self, template: Mapping[str, Any]) -> FederatedType | None:
        """Return the federated type of an object, or of a federated object's template."""
        return self.types.get(group_kind_of(template))

    def observe(self, federated: Mapping[str, Any], *, is_gone: bool = False) -> frozenset[Hashable]:
        """Record where a workload is; return the keys of those that its change concerns."""
        if not self.workloads.is_active or (type_ := self.type_of(federated["spec"]["template"])) is None:
            return frozenset()
        if is_gone:
            waiters = self.workloads.observe(key_of(federated), None)
            return waiters.to_check | waiters.to_retry
        policy = self.policies.policy_of(federated)
        waiters = self.workloads.observe(key_of(federated), to_workload(federated, type_, policy))
        return waiters.to_check | waiters.to_retry

    def members_by_policy(self) -> Mapping[PolicyRef, Collection[Name]]:
        """Return the objects by the policy that is in force for them."""
        return self._members

    @cached_property
    def _members(self) -> Mapping[PolicyRef, Collection[Name]]:
        found: dict[PolicyRef, list[Name]] = {}
        for federated in self.federated():
            if (ref := self.policies.match(federated)) is not None:
                found.setdefault(ref, []).append(name_of(federated))
        return found

    def _foresee(self, objects: ObjectSet, before: ObjectSet, now: datetime) -> None:
        """Let the permits see what they see in the control plane, without what only passes with time."""
        self.federated_objects = ListedObjects(objects.federated())
        self.freezes = self.holding.freezes
        for federated in before.federated():
            self.moves.remember(name_of(federated), federated, now)
        limits = self.limits.failover
        if limits.pace.is_on:  # all have had their turn in the end
            limits = replace(limits, pace=_NO_PACE)
        budgets = _Listed(objects, CLUSTER_DISRUPTION_BUDGETS)
        clusters = EvictingClusters(_Listed(objects, FEDERATED_CLUSTERS), budgets, limits.halts)
        for cluster in self.cluster_objects.values():
            clusters.on_cluster(None, cluster)
        self.evictions = Evictions(clusters, limits, is_settled=True)

    def _put_policies(self, objects: ObjectSet, before: ObjectSet) -> None:
        for resource in PROPAGATION:
            for source in objects.list(resource):
                namespace, name = name_of(source)
                try:
                    # What a plan changes is shown as it is in the end, after all waves.
                    is_new = before.get(resource, namespace, name) is not source
                    self.policies.put(compile_policy(without_record(source) if is_new else source))
                except (SelectorError, ValueError, TypeError) as error:
                    self.problems.append(f"{resource.kind} {name} is not taken over: {error}")
                    if (old := before.get(resource, namespace, name)) is not None and old is not source:
                        self.policies.put(compile_policy(old))

    def _plugins(self, objects: ObjectSet, installed: PluginRegistry) -> PluginRegistry:
        webhooks = []
        for source in objects.list(SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS):
            options, problem = admit(installed, source)
            if problem:
                self.problems.append(problem)
            if options is not None:
                webhooks.append(options)
                decisive = "" if problem else decisive_hash(source)
                self.profiles.put_plugin(options.name, decisive, options.unit_fields)
        return with_webhooks(installed, webhooks)


def federated_types(objects: ObjectSet, problems: list[str]) -> dict[GroupKind, FederatedType]:
    """Return the types in force. With several for one kind, the first by name is in force."""
    types: dict[GroupKind, FederatedType] = {}
    for config in sorted(objects.list(FEDERATED_TYPE_CONFIGS), key=lambda config: str(config["metadata"]["name"])):
        try:
            type_ = from_config(config)
        except (ValueError, KeyError, TypeError) as error:
            problems.append(f"FederatedTypeConfig {config['metadata']['name']}: {error}")
            continue
        types.setdefault(type_.resource.group_kind, type_)
    return types
