"""The objects of each policy: the counts in the status of policies, and the list of `fedctl why`.

It matches as the schedule and override controllers do, over compiled policies, and keeps the result by object and by
policy, so that a change of one object costs one match. Labels count even if the policy that they name does not exist
yet. Pure: `controllers/policystatus` feeds it from the caches. It lives as long as the control plane.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import Object, Resource
from federation.apimachinery.selectors import SelectorError
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policymatching import Bindings, subject_of_federated
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import PolicyRef, compile_policy

POLICIES = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES, OVERRIDE_POLICIES, CLUSTER_OVERRIDE_POLICIES)
_PROPAGATION = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES)

ObjectKey = tuple[str, str]
"""Namespace ("" for cluster-scoped ones) and name of a federated object."""


class PolicyKey(NamedTuple):
    """A policy of any of the four kinds; `namespace` is "" for cluster-wide ones."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.namespace}/{self.name}" if self.namespace else f"{self[0].kind} {self.name}"


class PolicyUsage:
    """All policies, and the objects that they apply to. `type_of` returns an object's federated type, None without."""

    def __init__(self, type_of: Callable[[Object], FederatedType | None]) -> None:
        self._type_of = type_of
        self._propagation = PolicyIndex()
        self._overrides = Bindings()
        self._used: dict[ObjectKey, tuple[Resource, frozenset[PolicyKey]]] = {}
        self._objects: dict[PolicyKey, dict[Resource, set[ObjectKey]]] = {}
        self.is_started = False
        """Whether every object was matched once."""
        self.unmatched: set[ObjectKey] = set()
        """Objects that are to be matched again."""

    @property
    def is_complete(self) -> bool:
        """Whether every object is matched with the policies as they are."""
        return self.is_started and not self.unmatched

    # -- policies

    def put_policy(self, key: PolicyKey, policy: Object) -> None:
        """Add or replace a policy. One that cannot be compiled leaves its previous version in force."""
        if key.resource not in _PROPAGATION:
            self._overrides.put(policy)
            return
        try:
            self._propagation.put(compile_policy(policy))
        except (SelectorError, ValueError, TypeError):
            return

    def drop_policy(self, key: PolicyKey, policy: Object) -> None:
        """Remove a policy."""
        if key.resource in _PROPAGATION:
            self._propagation.remove(PolicyRef(key.namespace, key.name))
        else:
            self._overrides.drop(policy)

    # -- objects

    def match(self, key: ObjectKey, federated: Object | None) -> Collection[PolicyKey]:
        """Match an object, None when it is gone, and return the policies that it gained or lost."""
        type_ = self._type_of(federated) if federated is not None else None
        old_resource, old = self._used.get(key, (None, frozenset[PolicyKey]()))
        new = frozenset[PolicyKey]()
        if type_ is not None and federated is not None:
            new = frozenset(self._policies_of(federated, type_))
        if type_ is not None and new:
            self._used[key] = (type_.resource, new)
        else:
            self._used.pop(key, None)
        resource = type_.resource if type_ is not None else None
        changed = old ^ new if resource == old_resource else old | new
        for policy in changed & old:
            assert old_resource is not None
            self._forget(policy, old_resource, key)
        for policy in changed & new:
            assert resource is not None
            self._objects.setdefault(policy, {}).setdefault(resource, set()).add(key)
        return changed

    def propagation_policy_of(self, federated: Object) -> PolicyKey | None:
        """Return the propagation policy of an object, None without one; a label may name a missing policy."""
        ref = self._propagation.match(federated)
        return None if ref is None else PolicyKey(_PROPAGATION[not ref.namespace], ref.namespace, ref.name)

    def _policies_of(self, federated: Object, type_: FederatedType) -> Iterator[PolicyKey]:
        if _is_handled_by(names.GLOBAL_SCHEDULER, type_) and (key := self.propagation_policy_of(federated)) is not None:
            yield key
        if not _is_handled_by(names.OVERRIDE_CONTROLLER, type_):
            return
        try:
            references = self._overrides.references(subject_of_federated(federated))
        except OverrideError:
            return  # an empty label: nothing applies, and the object has a condition that says so
        for reference in references:
            resource = OVERRIDE_POLICIES if reference.namespace else CLUSTER_OVERRIDE_POLICIES
            yield PolicyKey(resource, reference.namespace, reference.name)

    def _forget(self, policy: PolicyKey, resource: Resource, key: ObjectKey) -> None:
        kinds = self._objects[policy]
        kinds[resource].discard(key)
        if not kinds[resource]:
            del kinds[resource]
        if not kinds:
            del self._objects[policy]

    # -- reading

    def objects_of(self, policy: PolicyKey) -> Mapping[Resource, AbstractSet[ObjectKey]]:
        """Return the federated objects that the policy applies to, by the kind of their templates. Do not keep it."""
        return self._objects.get(policy, {})

    def status_of(self, policy: PolicyKey) -> dict[str, Any]:
        """Return `refCount` and `typedRefCount` of the policy; versions of a resource are counted together."""
        counts: dict[tuple[str, str], int] = defaultdict(int)
        for resource, keys in self.objects_of(policy).items():
            counts[resource.group, resource.plural] += len(keys)
        typed = [
            {"group": group, "resource": plural, "count": count} for (group, plural), count in sorted(counts.items())
        ]
        return {"refCount": sum(counts.values()), "typedRefCount": typed}


def _is_handled_by(controller: str, type_: FederatedType) -> bool:
    return any(controller in stage for stage in type_.controllers)
