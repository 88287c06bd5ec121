"""What the controllers of a feature get: the host, and what only the composition root knows."""

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
