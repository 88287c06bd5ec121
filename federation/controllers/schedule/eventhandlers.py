"""Event handlers of the schedule controller: update the input cache and enqueue the affected objects.

Objects of a policy with a higher `schedulingPriority` come first. Among equals, changes of single objects precede
changes that affect many (a cluster's labels, a policy). An unschedulable object is enqueued only for changes that match
its queueing hint (`unschedulable.py`).
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol, cast

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object, group_kind_of
from federation.apimachinery.selectors import SelectorError
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.names import (
    EVENT_INVALID_NAMESPACE_LABEL,
    EVENT_INVALID_PROPAGATION_POLICY,
    EVENT_INVALID_SCHEDULING_PROFILE,
)
from federation.controllers.schedule.requeueing import REPORTED
from federation.planning.federatedobject.placements import PLACED_IN
from federation.planning.waves.policychanges import is_policy_changed
from federation.runtime.controller import Key, key_of
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedobjects import FederatedObjects
from federation.scheduling.affinity.index import Waiters
from federation.scheduling.annotationswitch import problem_of
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import ClusterChange, ReplicasStrategy
from federation.scheduling.policyreferences import reference_warnings
from federation.scheduling.policyspec import Policy, PolicyRef, compile_policy
from federation.scheduling.policywarnings import policy_warnings, profile_warnings
from federation.scheduling.queueinghints import FOR_ALL
from federation.scheduling.relatedworkloads import to_workload
from federation.scheduling.worldobjects import Index, name_of

BY_POLICY = "schedule/policy"
"""The index of federated objects by the policy that their labels name."""
LEFT = "schedule/left"
"""The index of federated objects by the clusters that they left, or had to, because a toleration ended."""
SINGLE, BULK = 0, 1
"""Queue order within a policy priority: changes of single objects, then changes that affect many."""


class Enqueue(Protocol):
    """The controller's queue."""

    def __call__(self, key: Key, *, after_s: float = 0.0, priority: int = 0) -> None:
        """Add the key; lower priorities are processed first."""
        ...


class EventHandlers:
    """Handlers for every watched resource but webhook configurations (`remoteplugins.py`)."""

    def __init__(
        self,
        cache: InputCache,
        objects: FederatedObjects,
        enqueue: Enqueue,
        recorder: Recorder,
        installed: PluginRegistry,
        list_policies: Callable[[str], Iterable[Object]],
        *,
        reports_wait_s: float,
    ) -> None:
        self._list_policies = list_policies
        self.partners = Partners(objects, cache, self.retry)
        self._cache = cache
        self._objects = objects
        self._enqueue = enqueue
        self._recorder = recorder
        self._installed = installed
        self._reports_wait_s = reports_wait_s
        self.is_started = False
        """Whether all caches are complete."""

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a federated object."""
        if new is None:
            if old is not None:
                self._cache.forget(key_of(old))
        else:
            policy = self._cache.policies.policy_of(new)
            self._enqueue(key_of(new), priority=queue_priority(policy.priority if policy else 0, SINGLE))

    def on_cluster(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a FederatedCluster."""
        name = (new or old or {})["metadata"]["name"]
        if new is not None:
            clusters = self._cache.clusters
            before = clusters.free_on_nodes(name)
            change = clusters.update(new)
            if old is not None and change & ClusterChange.RESOURCES:
                self._cache.assume_cache.confirm(name, before, clusters.free_on_nodes(name))
        else:
            change = self._cache.clusters.remove(name)
        unschedulable = self._cache.unschedulable
        if change:
            marked = unschedulable.mark_retry_on(name, change)
            if not change & FOR_ALL:
                self._enqueue_many(marked)
            # Reports of members are batched for unplaced replicas, which most reports do not help.
            after_s = 0.0 if change & ~REPORTED else self._reports_wait_s
            self._enqueue_many(self._cache.unplaced.mark_retry_on(name, change), after_s=after_s)
        if change & FOR_ALL:
            others = (key for key in self._objects.all_keys() if key not in unschedulable)
            self._enqueue_many((*marked, *others))
        elif change & ClusterChange.READINESS:
            self._on_readiness(name)

    def _on_readiness(self, name: str) -> None:
        """Enqueue the objects in the cluster, whose toleration begins or ends, and those that may (re)turn to it."""
        keys = [key for index in (PLACED_IN, LEFT) for key in self._objects.keys_by_index(index, name)]
        if self._cache.clusters.is_ready(name):
            keys += self._cache.following_joins()
        self._enqueue_many(key for key in dict.fromkeys(keys) if key not in self._cache.unschedulable)

    def on_namespace(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a Namespace: its label may allow or forbid annotations that override policies."""
        name = (new if new is not None else old or {})["metadata"]["name"]
        policy = self._cache.annotation_policy
        is_changed = policy.put(new) if new is not None else policy.remove(name)
        if new is not None and (problem := problem_of(new)) and (old is None or problem != problem_of(old)):
            self._recorder.event(new, WARNING, EVENT_INVALID_NAMESPACE_LABEL, problem)
        if is_changed:
            self.retry(map(key_of, self._objects.list_namespace(name)))

    def on_policy(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a PropagationPolicy or ClusterPropagationPolicy."""
        if not is_policy_changed(old, new):
            return
        metadata = (new if new is not None else old or {})["metadata"]
        ref = PolicyRef(metadata.get("namespace", ""), metadata["name"])
        before, after = self._cache.policies.get(ref), None
        if new is not None:
            try:
                after = compile_policy(new)
            except (SelectorError, ValueError, TypeError) as error:
                # The previous version stays in force: a typing error must not leave its objects without a policy.
                self._recorder.event(new, WARNING, EVENT_INVALID_PROPAGATION_POLICY, str(error))
                return
            for warning in (*policy_warnings(new), *self._reference_warnings(new)):
                self._recorder.event(new, WARNING, EVENT_INVALID_PROPAGATION_POLICY, warning)
            self._cache.policies.put(after)
        else:
            self._cache.policies.remove(ref)
        affected = list(self._affected_by_policy(ref, before, after))
        self.partners.on_policies((before, after), affected)
        self.retry(affected)

    def _reference_warnings(self, policy: Object) -> list[str]:
        """Return warnings about what the policy refers to; none while the caches may lack what exists."""
        if not self.is_started:
            return []
        # The controller that derives FederatedTypeConfigs reports the kinds that have none.
        selectors = (policy.get("spec") or {}).get("resourceSelectors") or ()
        kinds = {group_kind_of(each) for each in selectors}
        # An event of a namespace must not name cluster-wide policies, which its readers may not be allowed to read.
        same_scope = self._list_policies(policy["metadata"].get("namespace", ""))
        labels = self._cache.scoped.labels(policy["metadata"].get("namespace", ""))
        return reference_warnings(policy, labels, kinds, same_scope)

    def _affected_by_policy(self, ref: PolicyRef, *versions: Policy | None) -> Iterable[Key]:
        """Return the objects that had the policy, that name it, and those of the types that it selects."""
        each = [version for policy in versions if policy is not None for version in policy.versions]
        kinds = {selector.kind for version in each for selector in version.selectors}
        keys = set(self._cache.bound_to(ref))
        keys.update(self._objects.keys_by_index(BY_POLICY, f"{ref.namespace}/{ref.name}", ref.namespace))
        for kind in kinds:
            keys.update(self._objects.keys_of_kind(kind, ref.namespace))
        return sorted(keys)

    def on_profile(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a SchedulingProfile."""
        if not _is_spec_changed(old, new):
            return
        name = (new if new is not None else old or {})["metadata"]["name"]
        if new is not None:
            self._cache.profiles.put(new)
            profile = self._cache.profiles.get(name, ReplicasStrategy.SPREAD)
            assert profile is not None
            for warning in profile_warnings(new, profile, self._installed):
                self._recorder.event(new, WARNING, EVENT_INVALID_SCHEDULING_PROFILE, warning)
        else:
            self._cache.profiles.remove(name)
        self.retry(Key(*key) for key in self._cache.using_profile(name))

    def on_indexed(self, index: Index, old: Object | None, new: Object | None) -> None:
        """Handle an event of a kind that steps of features read: what it affects is scheduled again."""
        if not index.is_changed(old, new):
            return
        if old is not None:
            index.remove(old)
        if new is not None and (problem := index.put(new)):
            self._recorder.event(new, WARNING, f"Invalid{index.resource.kind}", problem)
        versions = [version for version in (old, new) if version is not None]
        affected = (each for version in versions for each in index.affected(version, self._objects))
        self.retry(dict.fromkeys(Key(*name_of(each)) for each in affected))

    def on_freeze(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a ChangeFreeze: what it held may go on."""
        if new is None:
            self._cache.freezes.remove((old or {})["metadata"]["name"])
        else:
            self._cache.freezes.put(new)
        self.retry(Key(*key) for key in tuple(self._cache.freezes.waiting))

    def on_payer(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a federated object: others may get what it gives back to accounts of features."""
        key = key_of(new if new is not None else old or {})
        for accounts in self._cache.accounts:
            if accounts.observe(key, new):
                self.retry(Key(*each) for each in sorted(accounts.waiting - {key}))

    def on_project(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a Project: its clusters are all that exist for the objects of its namespaces."""
        projects = self._cache.scoped.projects
        changed = projects.put(new) if new is not None else projects.remove((old or {})["metadata"]["name"])
        self.retry(key_of(each) for namespace in changed for each in self._objects.list_namespace(namespace))

    def on_plugin(self, name: str, decisive_hash: str, fields: frozenset[str]) -> None:
        """Handle a change of a webhook plugin: retry the objects that it takes part in, and unschedulable ones."""
        self._cache.profiles.put_plugin(name, decisive_hash, fields)
        self.retry(dict.fromkeys((*self._cache.unschedulable.list_keys(), *self._cache.using_plugin(name))))

    def on_type(self, federated_type: FederatedType) -> None:
        """Handle a new or changed FederatedTypeConfig."""
        self.retry(self._objects.keys_of_type(federated_type))

    def retry(self, keys: Iterable[Key]) -> None:
        """Enqueue the objects, and mark the unschedulable ones among them for another attempt."""
        listed = tuple(keys)
        self._cache.unschedulable.mark_retry(listed)
        self._cache.unplaced.mark_retry(listed)
        self._enqueue_many(listed)

    def _enqueue_many(self, keys: Iterable[Key], *, after_s: float = 0.0) -> None:
        # In the order of plans: what is decided first has the choice.
        for key in sorted(keys):
            self._enqueue(key, after_s=after_s, priority=queue_priority(self._cache.priority_of(key), BULK))


def queue_priority(policy_priority: int, kind: int) -> int:
    """Return the priority in the queue, lower first: by the policy's priority, then SINGLE before BULK."""
    return kind - 2 * policy_priority


def _is_spec_changed(old: Object | None, new: Object | None) -> bool:
    return old is None or new is None or old.get("spec") != new.get("spec")


class Partners:
    """Feeds the index of workloads that have rules about each other; it stays empty until a policy has such a rule.

    A workload is enqueued by `retry` when another one of its rules is placed, moves or goes; nothing is polled.
    """

    def __init__(self, objects: FederatedObjects, cache: InputCache, retry: Callable[[Iterable[Key]], None]) -> None:
        self._objects = objects
        self._cache = cache
        self._retry = retry

    def on_federated(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a federated object."""
        if self._cache.workloads.is_active:
            self._wake(self._observe(key_of(new if new is not None else old or {}), new))

    def on_policies(self, versions: Iterable[Policy | None], keys: Iterable[Key]) -> None:
        """Handle a change of a policy: `versions` are those before and after it, `keys` the objects that it affects."""
        index = self._cache.workloads
        if not index.is_active:
            if not any(policy is not None and policy.workload_rules for policy in versions):
                return
            index.is_active = True
            keys = list(self._objects.all_keys())
        waiting = [self._observe(key, self._objects.get(key)) for key in keys]
        for waiters in waiting:
            self._wake(waiters)

    def _observe(self, key: Key, federated: Object | None) -> Waiters:
        type_ = self._objects.type_of(federated) if federated is not None else None
        if federated is None or type_ is None or federated["metadata"].get("deletionTimestamp"):
            return self._cache.workloads.observe(key, None)
        policy = self._cache.policies.policy_of(federated)
        return self._cache.workloads.observe(key, to_workload(federated, type_, policy))

    def _wake(self, waiters: Waiters) -> None:
        cache = self._cache
        waiting = [key for key in _keys(waiters.to_retry) if key in cache.unschedulable or key in cache.unplaced]
        if found := [*_keys(waiters.to_check), *waiting]:
            self._retry(found)


def _keys(keys: Iterable[Hashable]) -> list[Key]:
    return sorted(Key(*cast("Key", key)) for key in keys)
