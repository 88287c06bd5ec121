"""Which priority level a request belongs to: the level decides whose load it competes with in `limits.py`. Pure.

The division is that of Kubernetes' suggested flow schemas, with fewer levels; so are the shares, which are relative.
"""

from enum import Enum

from federation.api.names import SYSTEM_NAMESPACE
from federation.server.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    SERVICE_ACCOUNT_PREFIX,
    Attributes,
    User,
)

_NODES = "system:nodes"
_SYSTEM_PREFIX = "system:"
_TRUSTED_ACCOUNTS = tuple(f"{SERVICE_ACCOUNT_PREFIX}{name}:" for name in ("kube-system", SYSTEM_NAMESPACE))
_ELECTION_VERBS = frozenset({"get", "create", "update", "patch"})


class Level(Enum):
    """A priority level and its share of all requests in flight."""

    EXEMPT = ("exempt", 0)
    """`system:masters`: never waits, is never refused."""
    SYSTEM = ("system", 80)
    """Nodes, and leases of leader elections: what fails over when it is late."""
    CONTROLLERS = ("controllers", 40)
    """Service accounts of the system's namespaces and `system:` users."""
    WORKLOADS = ("workloads", 120)
    """Every other service account and user."""
    CATCH_ALL = ("catch-all", 5)
    """Who is not even authenticated."""

    def __init__(self, title: str, share: int) -> None:
        self.title = title
        self.share = share


def to_level(user: User, attributes: Attributes) -> Level:
    """Return the level of a request."""
    name, groups = user.name, user.groups
    if MASTERS in groups:
        return Level.EXEMPT
    if name.startswith(_SYSTEM_PREFIX) and name != ANONYMOUS.name:
        is_lease = attributes.resource == "leases" and attributes.group == "coordination.k8s.io"
        if _NODES in groups or (is_lease and attributes.verb in _ELECTION_VERBS):
            return Level.SYSTEM
        if not name.startswith(SERVICE_ACCOUNT_PREFIX) or name.startswith(_TRUSTED_ACCOUNTS):
            return Level.CONTROLLERS
        return Level.WORKLOADS
    return Level.WORKLOADS if AUTHENTICATED in groups else Level.CATCH_ALL
