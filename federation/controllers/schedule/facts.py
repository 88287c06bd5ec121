"""What the schedule controller knows: clusters, policies, profiles, and which object depends on which of them.

The watches in `controller.py` keep it current, `reconcile.py` reads it; nothing in it waits or does I/O. All of it is
rebuilt from the caches after a restart, but for the reservations, which only protect for seconds.
"""

from collections.abc import Iterable

from federation.controllers.schedule.waiting import Waiting
from federation.runtime.controller import Key
from federation.scheduling.annotationswitch import AnnotationSwitch
from federation.scheduling.matching import PolicyIndex
from federation.scheduling.policy import PolicyRef
from federation.scheduling.profiles import Profiles
from federation.scheduling.reservations import Reservations
from federation.scheduling.snapshot import ClusterCache
from federation.scheduling.triggers import TriggerSource


class Facts:
    """The inputs of decisions other than the object itself."""

    def __init__(
        self,
        profiles: Profiles | None = None,
        *,
        reservation_s: float = 60.0,
        switch: AnnotationSwitch | None = None,
        triggers: TriggerSource | None = None,
    ) -> None:
        self.switch = switch or AnnotationSwitch()
        self.clusters = ClusterCache()
        self.reservations = Reservations(reservation_s)
        self.policies = PolicyIndex()
        self.profiles = profiles or Profiles()
        self.triggers = triggers or TriggerSource()
        self.waiting = Waiting()
        self.short = Waiting()
        """Objects that are placed but for some replicas, until something can give those a place."""
        self._bound: dict[Key, PolicyRef] = {}
        self._by_policy: dict[PolicyRef, set[Key]] = {}

    # -- which policy an object had at its last decision

    def bind(self, key: Key, ref: PolicyRef | None) -> bool:
        """Note which policy applies to the object now; say whether none was known to."""
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

    def priority_of(self, key: Key) -> int:
        """Return the priority of the object's policy at its last decision, 0 for none."""
        ref = self._bound.get(key)
        policy = self.policies.get(ref) if ref is not None else None
        return policy.priority if policy is not None else 0

    def using_profile(self, name: str) -> list[Key]:
        """Return the objects whose policy names the profile."""
        refs = [ref for ref in self._by_policy if (policy := self.policies.get(ref)) and policy.profile == name]
        return [key for ref in refs for key in self._by_policy[ref]]

    def following_joins(self) -> list[Key]:
        """Return the objects whose policy follows clusters that join."""
        policies = map(self.policies.get, self._by_policy)
        refs = [p.ref for p in policies if p is not None and p.reschedule_when and p.reschedule_when.cluster_joined]
        return [key for ref in refs for key in self._by_policy[ref]]

    def using_plugin(self, name: str) -> list[Key]:
        """Return the objects whose policy names a profile that runs the plugin."""
        return [key for profile in self.profiles.with_plugin(name) for key in self.using_profile(profile)]

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self.waiting.discard(key)
        self.short.discard(key)
        self.bind(key, None)
        self.reservations.release(key)
