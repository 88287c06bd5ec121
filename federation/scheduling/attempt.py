"""A scheduling attempt for one federated object: is it the scheduler's, which policy applies, and where is it now?

`assessment.py` says whether it is to be scheduled. Pure.

Reference: docs/reference/scheduling.md.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.guard.earliervolumes import NO_VOLUMES, EarlierVolumes
from federation.scheduling.annotationoverrides import overrides_from_annotations
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.engine import Decision
from federation.scheduling.framework.policygroups import GROUPS
from federation.scheduling.framework.types import SchedulingMode, Toleration
from federation.scheduling.names import IGNORED_PLUGINS
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.podgroups import JOINS
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import Policy, PolicyRef
from federation.scheduling.recalledgangs import pods_by_request
from federation.scheduling.tolerations import with_defaults
from federation.scheduling.usermigration import migration_entry

Annotations = dict[str, str | None]
"""Annotations to write; None removes one."""


@dataclass(frozen=True, slots=True)
class SchedulingAttempt:
    """A federated object that is pending for the scheduler, with its policy.

    `policy` is None with a `ref` when the policy does not exist. `annotations` are written with every patch. `problem`
    describes an invalid migration request of the user, "" without one.
    """

    federated: Mapping[str, Any]
    federated_type: FederatedType
    ref: PolicyRef | None
    policy: Policy | None
    annotations: Annotations
    problem: str = ""
    volumes: EarlierVolumes = NO_VOLUMES
    """Where volumes of its name are, if it has no place."""
    _current: list[dict[str, int | None]] = field(default_factory=list, init=False, repr=False, compare=False)
    """The current placement, once it has been read."""

    def current(self) -> dict[str, int | None]:
        """Return the scheduler's current placement, the same object each time."""
        if not self._current:
            self._current.append(current_clusters(self.federated, self.federated_type))
        return self._current[0]

    def origin(self) -> dict[str, int | None]:
        """Return the placement that a decision starts from: of an object without a place, where its volumes are."""
        return self.current() or self.volumes.counts

    def annotated(self) -> Mapping[str, Any]:
        """Return the object with the attempt's annotations; the same object without any."""
        if not self.annotations:
            return self.federated
        metadata = self.federated["metadata"]
        merged = {**(metadata.get("annotations") or {}), **self.annotations}
        annotations = {key: value for key, value in merged.items() if value is not None}
        return {**self.federated, "metadata": {**metadata, "annotations": annotations}}

    def know(self, current: dict[str, int | None]) -> None:
        """Take the current placement from a caller who made the object with it."""
        self._current.append(current)

    def ignored_plugins(self) -> tuple[str, ...]:
        """Return the remote plugins that were unavailable for the last decision, which ignored them."""
        text = (self.federated["metadata"].get("annotations") or {}).get(IGNORED_PLUGINS)
        return tuple(text.split(",")) if text else ()

    def has_unplaced_replicas(self) -> bool:
        """Return whether the current placement lacks replicas that a decision may place."""
        if self.policy is None or self.policy.rescheduling.is_sticky:
            return False
        wanted = self.federated_type.replicas(self.federated["spec"]["template"]) or 0
        return 0 < sum(wanted if count is None else count for count in self.current().values()) < wanted

    def may_go_back(self) -> bool:
        """Return whether all replicas are placed, and a group of the policy lets its own return to an earlier one."""
        if (
            self.policy is None
            or self.policy.rescheduling.is_sticky
            or not any(group.returns for group in GROUPS.of(self.policy))
        ):
            return False
        return bool(self.current()) and not self.has_unplaced_replicas()


def start_attempt(
    federated: Mapping[str, Any],
    federated_type: FederatedType,
    policies: PolicyIndex,
    volumes: EarlierVolumes = NO_VOLUMES,
) -> SchedulingAttempt | None:
    """Return the attempt, None when the object is not pending for the scheduler."""
    if not pendingcontrollers.dependencies_fulfilled(federated, names.GLOBAL_SCHEDULER, federated_type.controllers):
        return None
    ref = policies.match(federated)
    policy = policies.policy_of(federated, ref)
    annotations, problem = migration_entry(federated, federated_type)
    if volumes.starts:
        annotations = {**annotations, names.ORDINAL_STARTS: volumes.starts}
    return SchedulingAttempt(federated, federated_type, ref, policy, annotations, problem, volumes)


def tolerations_of(federated: Mapping[str, Any], policy: Policy, options: UnitOptions) -> tuple[Toleration, ...]:
    """Return the tolerations of the unit that `build_unit` builds."""
    overriding = overrides_from_annotations(federated["metadata"].get("annotations") or {})
    return with_defaults(overriding.get("tolerations", policy.tolerations), options.toleration_s)


def assume(assume_cache: AssumeCache, key: Hashable, decision: Decision, now_s: float) -> None:
    """Add the decision's new replicas to the assume cache, before any member can report them."""
    unit = decision.unit
    if JOINS.of(unit) is not None:
        return  # the leader's decision counts it
    if unit.pods.sets and unit.mode is SchedulingMode.DUPLICATE:
        assume_cache.assume_whole(
            key, pods_by_request(unit.pods.sets), unit.current.keys(), decision.placements.keys(), now_s
        )
        return
    each = unit.desired_replicas or 0
    before, after = (
        {name: each if count is None else count for name, count in placements.items()}
        for placements in (unit.current, decision.placements)
    )
    assume_cache.assume(key, unit.shape.request, before, after, now_s)
