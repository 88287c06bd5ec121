"""Priority levels of API Priority and Fairness: requests of one level compete for its seats (`flowcontrol.py`). Pure.

Levels and their relative concurrency shares follow Kubernetes' suggested flow schemas, with fewer levels.
"""

from enum import Enum
from functools import lru_cache

from federation.apiserver.auth.identity import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    SERVICE_ACCOUNT_PREFIX,
    Attributes,
    User,
)

_NODES = "system:nodes"
_SYSTEM_PREFIX = "system:"
_ELECTION_VERBS = frozenset({"get", "create", "update", "patch"})


class PriorityLevel(Enum):
    """A priority level and its relative share of all seats."""

    EXEMPT = ("exempt", 0)
    """`system:masters`: its requests never queue and are never rejected."""
    SYSTEM = ("system", 80)
    """Nodes, and leases of leader elections: a late request causes a failover."""
    CONTROLLERS = ("controllers", 40)
    """Service accounts of system namespaces, and `system:` users."""
    WORKLOADS = ("workloads", 120)
    """Every other service account and user."""
    CATCH_ALL = ("catch-all", 5)
    """Unauthenticated users."""

    def __init__(self, title: str, share: int) -> None:
        self.title = title
        self.share = share


def classify(
    user: User, attributes: Attributes, system_namespaces: tuple[str, ...] = ("kube-system",)
) -> PriorityLevel:
    """Return the level of a request; service accounts in the `system_namespaces` are controllers."""
    name, groups = user.name, user.groups
    if MASTERS in groups:
        return PriorityLevel.EXEMPT
    if name.startswith(_SYSTEM_PREFIX) and name != ANONYMOUS.name:
        is_lease = attributes.resource == "leases" and attributes.group == "coordination.k8s.io"
        if _NODES in groups or (is_lease and attributes.verb in _ELECTION_VERBS):
            return PriorityLevel.SYSTEM
        if not name.startswith(SERVICE_ACCOUNT_PREFIX) or name.startswith(_account_prefixes(system_namespaces)):
            return PriorityLevel.CONTROLLERS
        return PriorityLevel.WORKLOADS
    return PriorityLevel.WORKLOADS if AUTHENTICATED in groups else PriorityLevel.CATCH_ALL


@lru_cache
def _account_prefixes(namespaces: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{SERVICE_ACCOUNT_PREFIX}{name}:" for name in namespaces)
