"""`Question`: one object that may be decided now, and what the steps of the chain read about it. Pure.

Each fact is computed when the first step asks for it. A gate may read what the gates before it made sure of: the policy
exists after "policy", the profile after "profile".
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.podgroups import PodGroup
from federation.scheduling.affinity.index import Workload
from federation.scheduling.affinity.relations import partners_away
from federation.scheduling.annotationswitch import with_allowed_annotations
from federation.scheduling.attempt import SchedulingAttempt, tolerations_of
from federation.scheduling.framework.profile import Profile
from federation.scheduling.framework.types import Taint
from federation.scheduling.jobqueues import QueueIndex
from federation.scheduling.movecauses import NO_CAUSE, QuietCauses, quiet_causes
from federation.scheduling.occasions import Occasion
from federation.scheduling.podgroups import membership_of, request_in
from federation.scheduling.podrequest import claims_of
from federation.scheduling.policyspec import Policy
from federation.scheduling.relatedworkloads import to_workload
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.tolerations import ended_tolerations, is_emptied
from federation.scheduling.triggers import ObjectTriggers, TriggerComparison, Triggers, clusters_left, compare_triggers
from federation.scheduling.workloadspreads import Spread, SpreadIndex
from federation.scheduling.world import World


class Caller(Protocol):
    """A gate, as far as it may call for a decision."""

    def calls(self, question: "Question") -> bool:
        """Return whether the object is decided although nothing about it changed."""
        ...


class Question:
    """One object that may be decided now."""

    def __init__(
        self,
        attempt: SchedulingAttempt,
        world: World,
        snapshot: Snapshot,
        occasion: Occasion,
        callers: Iterable[Caller] = (),
    ) -> None:
        self._callers = callers
        self.attempt = attempt
        self.world = world
        self.snapshot = snapshot
        self.occasion = occasion

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the object as it is stored."""
        return self.attempt.federated["metadata"].get("annotations") or {}

    @property
    def type_(self) -> FederatedType:
        """The federated type of the object."""
        return self.attempt.federated_type

    @property
    def policy(self) -> Policy:
        """The policy of the object."""
        assert self.attempt.policy is not None  # gate "policy"
        return self.attempt.policy

    @cached_property
    def queue(self) -> str:
        """The name of its JobQueue, "" without one."""
        queues = self.world.index(QueueIndex)
        return "" if queues is None else queues.queue_of(self.attempt.federated, self.type_)

    @cached_property
    def found_profile(self) -> Profile | None:
        """The profile of its policy, None if there is none of this name."""
        return self.world.profiles.get(self.policy.profile, self.policy.strategy, is_queued=bool(self.queue))

    @property
    def profile(self) -> Profile:
        """The profile of its policy."""
        assert self.found_profile is not None  # gate "profile"
        return self.found_profile

    @cached_property
    def _allowed(self) -> tuple[Mapping[str, Any], Mapping[str, str]]:
        return with_allowed_annotations(self.attempt.annotated(), self.world.annotation_policy)

    @property
    def federated(self) -> Mapping[str, Any]:
        """The object with the annotations that count."""
        return self._allowed[0]

    @property
    def ignored_annotations(self) -> Mapping[str, str]:
        """Overriding annotations that have no effect, and why."""
        return self._allowed[1]

    @property
    def template(self) -> Mapping[str, Any]:
        """The manifest of the object."""
        template: Mapping[str, Any] = self.federated["spec"]["template"]
        return template

    @cached_property
    def group(self) -> PodGroup | None:
        """The record of a pod in its group, None for an object without one."""
        return membership_of(self.federated)

    @cached_property
    def request(self) -> dict[str, int]:
        """The request of one replica."""
        return request_in(self.group, self.template, self.type_, claims_of(self.federated))

    @cached_property
    def spread(self) -> Spread | None:
        """The WorkloadSpread that targets the object."""
        spreads = self.world.index(SpreadIndex)
        return None if spreads is None else spreads.find(self.federated)

    @cached_property
    def ended(self) -> Mapping[str, Taint]:
        """The taints that it tolerated for a time that is over, by cluster."""
        if not self.snapshot.with_taint_times:
            return {}
        tolerations = tolerations_of(self.federated, self.policy, self.world.options)
        return ended_tolerations(tolerations, self.snapshot.with_taint_times, self.occasion.now)

    @cached_property
    def is_sent_away(self) -> bool:
        """Whether an administrator empties one of its clusters, or takes one from its project.

        No wish of a user of its namespace holds that. A taint that its policy tolerates sends nothing away.
        """
        current, tolerations = self.attempt.current(), tolerations_of(self.federated, self.policy, self.world.options)
        clusters = filter(None, map(self.snapshot.by_name.get, current))
        return any(each.name in self.snapshot.left or is_emptied(each, tolerations) for each in clusters)

    @cached_property
    def workload(self) -> Workload | None:
        """The object for rules about workloads, None while no policy has any."""
        return to_workload(self.federated, self.type_, self.policy) if self.world.workloads.is_active else None

    @cached_property
    def partners_away(self) -> Sequence[str]:
        """Clusters, sorted, that its required partners have left."""
        if self.occasion.recorded is not None:
            return self.occasion.recorded.away
        if self.workload is None:
            return ()
        return partners_away(self.world.workloads, self.workload, self.attempt.current(), self.snapshot.by_name)

    @property
    def last_triggers(self) -> str | None:
        """The triggers of its last decision."""
        return self.annotations.get(names.SCHEDULING_TRIGGERS)

    @cached_property
    def triggers(self) -> Triggers:
        """The inputs that a decision has now."""
        profiles, spread, replicas = self.world.profiles, self.spread, self.type_.replicas(self.template)
        return self.world.triggers.triggers(
            ObjectTriggers(
                annotations=self.federated["metadata"].get("annotations") or {},
                replicas=replicas,
                request=self.request,
                policy=self.policy,
                profile_hash=profiles.hash(self.policy.profile),
                plugin_fields_hash=profiles.plugin_fields_hash(self.policy.profile, self.template),
                spread_hash=spread.hash(self.template, replicas or 0, self.snapshot) if spread is not None else "",
                ended_tolerations=self._relevant_ends(),
                partners_away=self.partners_away,
            ),
            self.snapshot,
        )

    @cached_property
    def comparison(self) -> TriggerComparison:
        """The difference to the last decision."""
        is_back = self.occasion.is_plugin_back
        return compare_triggers(self.last_triggers, self.triggers, self.policy, is_plugin_back=is_back)

    @cached_property
    def is_called(self) -> bool:
        """Whether it is decided without a quiet cause: it changed, found no place, or a gate calls for it."""
        if self.comparison.is_due or self.occasion.is_unschedulable:
            return True
        return any(caller.calls(self) for caller in self._callers)

    @cached_property
    def quiet(self) -> QuietCauses:
        """Why it is decided if nothing calls for it."""
        if self.is_called:
            return NO_CAUSE
        occasion, has_unplaced = self.occasion, not self.attempt.may_go_back()
        return quiet_causes(
            self.comparison.changed,
            occasion.can_place_more,
            has_unplaced,
            homes=occasion.homes,
            completes=occasion.completes,
        )

    def _relevant_ends(self) -> Sequence[str]:
        """Return the clusters, sorted, that the object must leave or has left because a toleration ended.

        When such a cluster is back it is missing here, which counts as a change: the object may return.
        """
        if not self.ended:
            return ()
        return sorted(self.ended.keys() & (self.attempt.current().keys() | clusters_left(self.last_triggers)))
