"""The world that decisions are made in: everything that they depend on besides their object. Pure.

There are three kinds of it. The schedule controller's is the present (`controllers/schedule/inputcache.py`), that of a
plan is the present with changes (`whatif/state.py`), and that of a replay is made from records (`replay/world.py`).
They differ in where their objects come from; the chain (`chain.py`) is the same.
"""

from federation.scheduling.affinity.index import WorkloadIndex
from federation.scheduling.annotationswitch import AnnotationPolicy
from federation.scheduling.jobqueues import QueueIndex
from federation.scheduling.occasions import UnitOptions
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.profiles import Profiles
from federation.scheduling.projectsnapshots import ProjectSnapshots
from federation.scheduling.quotas import Quotas
from federation.scheduling.snapshot import ClusterCache
from federation.scheduling.triggers import TriggerSource
from federation.scheduling.workloadspreads import SpreadCompiler, SpreadIndex


class World:
    """Compiled clusters, policies, profiles and what else is said about objects, empty at first."""

    def __init__(
        self,
        spreads: SpreadCompiler,
        *,
        options: UnitOptions | None = None,
        annotation_policy: AnnotationPolicy | None = None,
        triggers: TriggerSource | None = None,
    ) -> None:
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
