"""The world that decisions are made in: everything that they depend on besides their object. Pure.

There are three kinds of it. The schedule controller's is the present (`controllers/schedule/inputcache.py`), that of a
plan is the present with changes (`whatif/state.py`), and that of a replay is made from records (`replay/world.py`).
They differ in where their objects come from; the chain (`chain.py`) is the same.
"""

from federation.api import names
from federation.planning.failover.evictingclusters import EvictingClusters, NothingListed
from federation.planning.federatedobject.placements import effective_placement, placement_of
from federation.planning.freezes.freezeindex import FreezeIndex
from federation.planning.guard.ledger import Cause
from federation.planning.guard.moves import Moves
from federation.scheduling.affinity.index import WorkloadIndex
from federation.scheduling.annotationswitch import AnnotationPolicy
from federation.scheduling.attempt import SchedulingAttempt
from federation.scheduling.evictions import Evictions
from federation.scheduling.hostlimits import Limits
from federation.scheduling.jobqueues import QueueIndex
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import Policy
from federation.scheduling.profiles import Profiles
from federation.scheduling.projectsnapshots import ProjectSnapshots
from federation.scheduling.quotas import Quotas
from federation.scheduling.snapshot import ClusterCache
from federation.scheduling.triggers import TriggerSource
from federation.scheduling.workloadspreads import SpreadCompiler, SpreadIndex
from federation.scheduling.worldobjects import ListedObjects, Name, WorldObjects


class World:
    """Compiled clusters, policies, profiles and what else is said about objects, empty at first."""

    def __init__(
        self,
        spreads: SpreadCompiler,
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
        self.spreads = SpreadIndex(spreads)
        self.quotas = Quotas()
        self.workloads = WorkloadIndex()
        self.queues = QueueIndex()
        self.federated_objects: WorldObjects = ListedObjects()
        self.freezes = FreezeIndex()
        self.moves = Moves(self.limits.guard)
        clusters = EvictingClusters(NothingListed(), NothingListed(), self.limits.failover.halts)
        self.evictions = Evictions(clusters, self.limits.failover)

    def withdraw(self, key: Name) -> None:
        """Forget the moves of an object that stays where it is."""
        self.evictions.withdraw(key)
        self.moves.withdraw(key)

    def count(self, cause: Cause, attempt: SchedulingAttempt, policy: Policy) -> int:
        """Return how many objects there are of the cause of a move."""
        namespace, objects = attempt.federated["metadata"].get("namespace") or "", self.federated_objects
        match cause.kind:
            case "FederatedTypeConfig":
                return len(list(objects.of_kind(attempt.federated_type.resource.group_kind)))
            case "Namespace" | "Project":
                inside = (each for each in objects.scan() if each["metadata"].get("namespace") == namespace)
                return sum(bool(placement_of(each, names.GLOBAL_SCHEDULER)) for each in inside)
            case "FederatedCluster":
                return sum(cause.name in effective_placement(each) for each in objects.scan())
            case "SchedulingProfile":
                found = (self.policies.policy_of(each) for each in objects.scan())
                return sum(each is not None and each.profile == policy.profile for each in found)
        return sum(self.policies.match(each) == policy.ref for each in objects.scan())
