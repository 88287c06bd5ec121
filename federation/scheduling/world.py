"""The world that decisions are made in: everything that they depend on besides their object. Pure.

There are three kinds of it. The schedule controller's is the present (`controllers/schedule/inputcache.py`), that of a
plan is the present with changes (`whatif/state.py`), and that of a replay is made from records (`replay/world.py`).
They differ in where their objects come from; the chain (`chain.py`) is the same.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from federation.apimachinery.resources import Resource
from federation.planning.failover.evictingclusters import EvictingClusters, NothingListed
from federation.planning.federatedobject.placements import PLACED_IN, Name
from federation.planning.freezes.freezeindex import FreezeIndex
from federation.planning.guard.ledger import Cause
from federation.planning.guard.moves import Moves
from federation.scheduling.affinity.index import WorkloadIndex
from federation.scheduling.annotationswitch import AnnotationPolicy
from federation.scheduling.attempt import SchedulingAttempt
from federation.scheduling.evictions import Evictions
from federation.scheduling.hostlimits import Limits
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import Policy, PolicyRef
from federation.scheduling.profiles import Profiles
from federation.scheduling.projectsnapshots import ProjectSnapshots
from federation.scheduling.quotas import Quotas
from federation.scheduling.snapshot import ClusterCache
from federation.scheduling.triggers import TriggerSource
from federation.scheduling.volumefinder import RecordedVolumes, VolumeFinder
from federation.scheduling.worldobjects import PLACED_NAMESPACE, Accounts, Copies, Index, ListedObjects, WorldObjects

Known = TypeVar("Known", bound=Index)


class World:
    """Compiled clusters, policies, profiles and what else is said about objects, empty at first."""

    def __init__(
        self,
        reads: Iterable[type[Index]],
        *,
        options: UnitOptions | None = None,
        annotation_policy: AnnotationPolicy | None = None,
        triggers: TriggerSource | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.options = options or UnitOptions()
        self.annotation_policy = annotation_policy or AnnotationPolicy()
        self.triggers = triggers or TriggerSource()
        self.clusters = ClusterCache()
        self.scoped = ProjectSnapshots(self.clusters)
        self.policies = PolicyIndex()
        self.profiles = Profiles()
        self.indexes: Mapping[Resource, Index] = {each.resource: each() for each in reads}
        """The kinds that steps of features read."""
        self.accounts = tuple(each for each in self.indexes.values() if isinstance(each, Accounts))
        self.quotas = Quotas()
        self.workloads = WorkloadIndex()
        self.federated_objects: WorldObjects = ListedObjects()
        self.earlier_volumes: VolumeFinder = RecordedVolumes()
        self.copies: Copies | None = None
        """The copies in members, None in a world that does not know them."""
        self.freezes = FreezeIndex()
        self.moves = Moves(self.limits.guard)
        clusters = EvictingClusters(NothingListed(), NothingListed(), self.limits.failover.halts)
        self.evictions = Evictions(clusters, self.limits.failover)

    def index(self, kind: type[Known]) -> Known | None:
        """Return the index of a class, None without the feature whose steps read it."""
        return next((each for each in self.indexes.values() if isinstance(each, kind)), None)

    def withdraw(self, key: Name) -> None:
        """Forget the moves of an object that stays where it is."""
        self.evictions.withdraw(key)
        self.moves.withdraw(key)

    def members_by_policy(self) -> Mapping[PolicyRef, Collection[Name]]:
        """Return the objects by the policy of their last decision."""
        return {}

    def using_profile(self, name: str) -> list[Name]:
        """Return the objects whose policy names the profile."""
        members = self.members_by_policy()
        policies = filter(None, map(self.policies.get, members))
        refs = [policy.ref for policy in policies if any(version.profile == name for version in policy.versions)]
        return [key for ref in refs for key in members[ref]]

    def count(self, cause: Cause, attempt: SchedulingAttempt, policy: Policy) -> int:
        """Return how many objects there are of the cause of a move."""
        objects = self.federated_objects
        match cause.kind:
            case "FederatedTypeConfig":
                return len(objects.keys_of_kind(attempt.federated_type.resource.group_kind))
            case "Namespace" | "Project":
                return len(
                    objects.keys_by_index(PLACED_NAMESPACE, attempt.federated["metadata"].get("namespace") or "")
                )
            case "FederatedCluster":
                return len(objects.keys_by_index(PLACED_IN, cause.name))
            case "SchedulingProfile":
                return len(self.using_profile(policy.profile))
        return len(self.members_by_policy().get(policy.ref, ()))
