"""Find the federated objects that a change affects: the controllers would reconcile them because of it.

A superset is correct: an object whose inputs are unchanged keeps its placement, and costs only time. Changes that do
not requeue every object (free resources of a member) affect unschedulable objects only, as in the controllers.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import template_kind
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DISRUPTION_BUDGETS,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    FEDERATED_TYPE_CONFIGS,
    PROJECTS,
    SCHEDULING_PROFILES,
)
from federation.apimachinery import conditions
from federation.apimachinery.resources import NAMESPACES, GroupKind, Object
from federation.planning.federatedobject.heldback import held_back, is_held
from federation.planning.federatedobject.objectindex import policies_named
from federation.planning.federatedobject.placements import placement_of
from federation.planning.overrides.policymatching import selected_types
from federation.planning.projects.projectindex import compile_project, namespace_of
from federation.scheduling.chain import Chain
from federation.scheduling.engine import Outcome
from federation.scheduling.framework.types import ClusterChange
from federation.scheduling.snapshot import compare, to_cluster
from federation.scheduling.whatif.holding import SUSPENSIONS
from federation.scheduling.whatif.state import CONTEXT, OVERRIDES, PROPAGATION, CompiledState, ObjectChange, ObjectSet
from federation.scheduling.worldobjects import Index, name_of

_HOLDING_MOVES = (CHANGE_FREEZES, CLUSTER_DISRUPTION_BUDGETS)
"""Kinds whose permits hold decisions: what they held goes on when they change."""
Predicate = Callable[[Mapping[str, Any]], bool]

_AFFECTS_ALL = ClusterChange.MEMBERSHIP | ClusterChange.LABELS | ClusterChange.TAINTS | ClusterChange.API_TYPES
_PROPAGATION_LABELS = (names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL)
_OVERRIDE_LABELS = (names.OVERRIDE_POLICY_LABEL, names.CLUSTER_OVERRIDE_POLICY_LABEL)


def is_unschedulable(federated: Mapping[str, Any]) -> bool:
    """Return whether the object's last decision was unsuccessful; a decision that a quota limited is successful."""
    condition = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
    is_limited = condition.get("reason") == Outcome.QUOTA_EXCEEDED and placement_of(federated, names.GLOBAL_SCHEDULER)
    return condition.get("status") == "False" and not is_limited


def waits_for_quota(federated: Mapping[str, Any]) -> bool:
    """Return whether a quota may keep the object from all that it wants."""
    condition = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
    return condition.get("reason") == Outcome.QUOTA_EXCEEDED or any(map(is_held, held_back(federated).values()))


def affected_objects(objects: ObjectSet, changes: Iterable[ObjectChange], state: CompiledState) -> list[Object]:
    """Return the federated objects that changes of clusters, policies, profiles, webhooks and types affect."""
    predicates = [_predicate(change, state) for change in changes if affects_others(change, state.chain)]
    if not predicates:
        return []
    return [obj for obj in objects.federated() if any(predicate(obj) for predicate in predicates)]


def affects_others(change: ObjectChange, chain: Chain) -> bool:
    """Return whether the change may affect federated objects besides its own."""
    return change.resource in (*CONTEXT, *chain.kinds, *_HOLDING_MOVES, *SUSPENSIONS)


def _predicate(change: ObjectChange, state: CompiledState) -> Predicate:
    if change.resource in _HOLDING_MOVES:
        return _everything
    if change.resource in SUSPENSIONS:
        return lambda federated: bool(held_back(federated))
    if change.resource == FEDERATED_CLUSTERS:
        return _everything if _affects_all(change) else is_unschedulable
    if change.resource == FEDERATED_RESOURCE_QUOTAS:
        return lambda federated: federated["metadata"].get("namespace") == change.namespace
    if (index := state.indexes.get(change.resource)) is not None:
        return _of_index(change, index, state)
    if change.resource == PROJECTS:
        namespaces = {
            name for each in (change.before, change.after) if each for name in compile_project(each).namespaces
        }
        return lambda federated: namespace_of(federated) in namespaces
    if change.resource == NAMESPACES:
        return lambda federated: federated["metadata"].get("namespace") == change.name
    if change.resource in PROPAGATION:
        return _of_policy(change, _PROPAGATION_LABELS)
    if change.resource in OVERRIDES:
        return _of_policy(change, _OVERRIDE_LABELS)
    if change.resource == SCHEDULING_PROFILES:
        return _of_profiles({change.name}, state)
    if change.resource == FEDERATED_TYPE_CONFIGS:
        return _of_type(change)
    uses_plugin = _of_profiles(set(state.profiles.names_with_plugin(change.name)), state)
    return lambda federated: is_unschedulable(federated) or uses_plugin(federated)


def _everything(_: Mapping[str, Any]) -> bool:
    return True


def _affects_all(change: ObjectChange) -> bool:
    if change.before is None or change.after is None:
        return True
    return bool(compare(to_cluster(change.before), to_cluster(change.after)) & _AFFECTS_ALL)


def _of_policy(change: ObjectChange, labels: tuple[str, str]) -> Predicate:
    reference = f"{change.namespace}/{change.name}"
    types = selected_types((change.before, change.after))

    def holds(federated: Mapping[str, Any]) -> bool:
        if change.namespace and federated["metadata"].get("namespace") != change.namespace:
            return False
        if reference in policies_named(federated, *labels):
            return True
        return bool(types) and template_kind(federated) in types

    return holds


def _of_profiles(profiles: set[str], state: CompiledState) -> Predicate:
    def holds(federated: Mapping[str, Any]) -> bool:
        policy = state.policies.policy_of(federated)
        return policy is not None and policy.profile in profiles

    return holds


def _of_index(change: ObjectChange, index: Index, state: CompiledState) -> Predicate:
    versions = [version for version in (change.before, change.after) if version is not None]
    affected = {name_of(each) for version in versions for each in index.affected(version, state.federated_objects)}
    return lambda federated: name_of(federated) in affected


def _of_type(change: ObjectChange) -> Predicate:
    kinds = set()
    for version in (change.before, change.after):
        source = ((version or {}).get("spec") or {}).get("sourceType") or {}
        kinds.add(GroupKind(str(source.get("group") or ""), str(source.get("kind") or "")))
    return lambda federated: template_kind(federated) in kinds
