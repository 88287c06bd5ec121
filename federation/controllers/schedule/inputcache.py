"""The inputs of decisions: compiled clusters, policies and profiles, and the objects that depend on them.

`eventhandlers.py` updates it, `decider.py` reads it; it does no I/O. After a restart all of it is rebuilt from the
informers' caches, except assumed replicas, which matter for seconds only.
"""

from collections.abc import Collection, Iterable, Mapping

from federation.controllers.schedule.unschedulable import UnschedulableObjects
from federation.runtime.controller import Key
from federation.runtime.federatedobjects import FederatedObjects
from federation.scheduling.annotationswitch import AnnotationPolicy
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.chain import Chain
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.policyspec import PolicyRef
from federation.scheduling.triggers import TriggerSource
from federation.scheduling.world import World
from federation.scheduling.worldobjects import INDEXES


class InputCache(World):
    """The present world, and the state of objects between decisions."""

    def __init__(
        self,
        chain: Chain,
        objects: FederatedObjects,
        *,
        assumed_s: float = 60.0,
        options: UnitOptions | None = None,
        annotation_policy: AnnotationPolicy | None = None,
        triggers: TriggerSource | None = None,
    ) -> None:
        super().__init__(chain.reads, options=options, annotation_policy=annotation_policy, triggers=triggers)
        self.chain = chain
        self.federated_objects = objects
        for name, values in INDEXES.items():
            objects.add_index(name, values)
        self.assume_cache = AssumeCache(assumed_s)
        self.unschedulable = UnschedulableObjects()
        self.unplaced = UnschedulableObjects()
        """Placed objects with unplaced replicas."""
        self._bound: dict[Key, PolicyRef] = {}
        self._by_policy: dict[PolicyRef, set[Key]] = {}

    # -- the policy of each object's last decision

    def bind(self, key: Key, ref: PolicyRef | None) -> bool:
        """Record the object's policy; return whether the object had none recorded."""
        old = self._bound.get(key)
        if old == ref:
            return old is None
        if old is not None:
            members = self._by_policy[old]
            members.discard(key)
            if not members:
                del self._by_policy[old]
        if ref is None:
            self._bound.pop(key, None)
        else:
            self._bound[key] = ref
            self._by_policy.setdefault(ref, set()).add(key)
        return old is None

    def bound_to(self, ref: PolicyRef) -> Iterable[Key]:
        """Return the objects that had the policy at their last decision."""
        return tuple(self._by_policy.get(ref, ()))

    def members_by_policy(self) -> Mapping[PolicyRef, Collection[Key]]:
        """Return the objects by the policy of their last decision."""
        return self._by_policy

    def priority_of(self, key: Key) -> int:
        """Return the priority of the object's policy at its last decision, 0 for none."""
        ref = self._bound.get(key)
        policy = self.policies.get(ref) if ref is not None else None
        return policy.priority if policy is not None else 0

    def following_joins(self) -> list[Key]:
        """Return the objects whose policy follows clusters that join."""
        policies = map(self.policies.get, self._by_policy)
        refs = [p.ref for p in policies if p is not None and any(version.follows_joins for version in p.versions)]
        return [key for ref in refs for key in self._by_policy[ref]]

    def using_plugin(self, name: str) -> list[Key]:
        """Return the objects whose policy names a profile that runs the plugin."""
        return [Key(*key) for each in self.profiles.names_with_plugin(name) for key in self.using_profile(each)]

    def forget(self, key: Key) -> None:
        """Remove a deleted object."""
        self.unschedulable.remove(key)
        self.unplaced.remove(key)
        self.bind(key, None)
        self.assume_cache.forget(key)
