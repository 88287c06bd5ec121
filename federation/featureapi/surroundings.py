"""The arguments of a feature's controllers: the host, and facts that only the composition root has."""

from dataclasses import dataclass

from federation.journal.decisions import Journal
from federation.planning.clusters.clusterresources import Collectors
from federation.runtime.host import Host
from federation.scheduling.policyusage import PolicyUsage


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One control plane, as the controllers of features see it."""

    host: Host
    policy_usage: PolicyUsage
    """Which policies apply to which objects."""
    collectors: Collectors
    """The capacity of members, node by node."""
    journal: Journal
    toleration_s: float
    """Time after which an unreachable cluster counts as lost."""
    has_existing_host: bool
    """Whether the host is an API server that is not embedded, with a controller manager of its own."""
    preemption_interval_s: float
    """Time between two rounds of preemption; 0 turns it off."""
