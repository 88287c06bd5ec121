"""Which level a request belongs to."""

import pytest

from federation.server.identity import ANONYMOUS, Attributes, User, service_account_user
from federation.server.priority import Level, to_level

PODS = Attributes("list", "", "v1", "pods")
LEASE = Attributes("update", "coordination.k8s.io", "v1", "leases", namespace="kube-system", name="x")
LEASES = Attributes("list", "coordination.k8s.io", "v1", "leases")


@pytest.mark.parametrize(
    ("user", "attributes", "level"),
    [
        (User("admin", ("system:masters", "system:authenticated")), PODS, Level.EXEMPT),
        (User("system:node:n1", ("system:nodes", "system:authenticated")), PODS, Level.SYSTEM),
        (User("system:kube-scheduler", ("system:authenticated",)), LEASE, Level.SYSTEM),
        (service_account_user("shop", "operator", "1"), LEASE, Level.SYSTEM),
        (service_account_user("shop", "operator", "1"), LEASES, Level.WORKLOADS),
        (User("system:kube-scheduler", ("system:authenticated",)), PODS, Level.CONTROLLERS),
        (service_account_user("kube-system", "gc", "1"), PODS, Level.CONTROLLERS),
        (service_account_user("kube-admiral-system", "agent", "1"), PODS, Level.CONTROLLERS),
        (service_account_user("kube-system-of-mine", "x", "1"), PODS, Level.WORKLOADS),
        (User("jane", ("system:authenticated",)), PODS, Level.WORKLOADS),
        (User("jane", ("system:authenticated",)), LEASE, Level.WORKLOADS),
        # Who calls themselves a node by group alone is not one.
        (User("jane", ("system:nodes", "system:authenticated")), PODS, Level.WORKLOADS),
        (ANONYMOUS, PODS, Level.CATCH_ALL),
        (User("jane", ("system:unauthenticated",)), PODS, Level.CATCH_ALL),
    ],
)
def test_levels_follow_who_asks_and_what_for(user: User, attributes: Attributes, level: Level) -> None:
    assert to_level(user, attributes) is level
