"""Which federated objects a change is about: those that the controllers would look at again because of it.

A superset does no harm, because looking at an object that nothing changed for changes nothing; it only costs time.
What the controllers are not woken by (a member's free resources) wakes here, too, only the objects that wait for
something to help them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from federation.api import conditions, names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_TYPE_CONFIGS, NAMESPACES, SCHEDULING_PROFILES, Object
from federation.planning.fedindex import policies_named, type_of_template
from federation.planning.overrides.bindings import selected_types
from federation.scheduling.framework.types import Change as Difference
from federation.scheduling.policy import PolicyRef
from federation.scheduling.snapshot import compare, to_cluster
from federation.scheduling.whatif.world import CONTEXT, OVERRIDES, PROPAGATION, Change, Facts, World

Predicate = Callable[[Mapping[str, Any]], bool]

_FOR_ALL = Difference.MEMBERSHIP | Difference.LABELS | Difference.TAINTS | Difference.API_TYPES
_PROPAGATION_LABELS = (names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL)
_OVERRIDE_LABELS = (names.OVERRIDE_POLICY_LABEL, names.CLUSTER_OVERRIDE_POLICY_LABEL)


def is_waiting(fed_object: Mapping[str, Any]) -> bool:
    """Say whether the object's last decision was unsuccessful."""
    held = (fed_object.get("status") or {}).get("conditions")
    return (conditions.find(held, names.SCHEDULED) or {}).get("status") == "False"


def concerned(world: World, changes: Iterable[Change], facts: Facts) -> list[Object]:
    """Return the federated objects that changes of clusters, policies, profiles, webhooks and types are about."""
    predicates = [_predicate(change, facts) for change in changes if change.resource in CONTEXT]
    if not predicates:
        return []
    return [obj for obj in world.federated() if any(predicate(obj) for predicate in predicates)]


def _predicate(change: Change, facts: Facts) -> Predicate:
    if change.resource == FEDERATED_CLUSTERS:
        return _everything if _is_for_all(change) else is_waiting
    if change.resource == NAMESPACES:
        return lambda fed_object: fed_object["metadata"].get("namespace") == change.name
    if change.resource in PROPAGATION:
        return _of_policy(change, _PROPAGATION_LABELS)
    if change.resource in OVERRIDES:
        return _of_policy(change, _OVERRIDE_LABELS)
    if change.resource == SCHEDULING_PROFILES:
        return _of_profiles({change.name}, facts)
    if change.resource == FEDERATED_TYPE_CONFIGS:
        return _of_type(change)
    decides = _of_profiles(set(facts.profiles.with_plugin(change.name)), facts)
    return lambda fed_object: is_waiting(fed_object) or decides(fed_object)


def _everything(_: Mapping[str, Any]) -> bool:
    return True


def _is_for_all(change: Change) -> bool:
    if change.before is None or change.after is None:
        return True
    return bool(compare(to_cluster(change.before), to_cluster(change.after)) & _FOR_ALL)


def _of_policy(change: Change, labels: tuple[str, str]) -> Predicate:
    reference = f"{change.namespace}/{change.name}"
    types = {f"{version}/{kind}" for version, kind in selected_types((change.before, change.after))}

    def holds(fed_object: Mapping[str, Any]) -> bool:
        if change.namespace and fed_object["metadata"].get("namespace") != change.namespace:
            return False
        if reference in policies_named(fed_object, *labels):
            return True
        return bool(types) and not types.isdisjoint(type_of_template(fed_object))

    return holds


def _of_profiles(profiles: set[str], facts: Facts) -> Predicate:
    def holds(fed_object: Mapping[str, Any]) -> bool:
        ref: PolicyRef | None = facts.policies.match(fed_object)
        policy = facts.policies.get(ref) if ref is not None else None
        return policy is not None and policy.profile in profiles

    return holds


def _of_type(change: Change) -> Predicate:
    kinds = set()
    for version in (change.before, change.after):
        source = ((version or {}).get("spec") or {}).get("sourceType") or {}
        group, number = source.get("group") or "", source.get("version", "")
        kinds.add(f"{group}/{number}/{source.get('kind')}" if group else f"{number}/{source.get('kind')}")
    return lambda fed_object: not kinds.isdisjoint(type_of_template(fed_object))
