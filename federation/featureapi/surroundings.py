"""The arguments of a feature's controllers: the host, and facts that only the composition root has."""

from dataclasses import dataclass

from federation.runtime.host import Host
from federation.scheduling.policyusage import PolicyUsage


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One control plane, as the controllers of features see it."""

    host: Host
    policy_usage: PolicyUsage
    """Which policies apply to which objects."""
    toleration_s: float
    """Time after which an unreachable cluster counts as lost."""
    has_existing_host: bool
    """Whether the host is an API server that is not embedded, with a controller manager of its own."""
