"""Classification of requests into priority levels."""

import pytest

from federation.apiserver.auth.identity import ANONYMOUS, Attributes, User, service_account_user
from federation.apiserver.http.prioritylevels import PriorityLevel, classify

PODS = Attributes("list", "", "v1", "pods")
LEASE = Attributes("update", "coordination.k8s.io", "v1", "leases", namespace="kube-system", name="x")
LEASES = Attributes("list", "coordination.k8s.io", "v1", "leases")


@pytest.mark.parametrize(
    ("user", "attributes", "level"),
    [
        (User("admin", ("system:masters", "system:authenticated")), PODS, PriorityLevel.EXEMPT),
        (User("system:node:n1", ("system:nodes", "system:authenticated")), PODS, PriorityLevel.SYSTEM),
        (User("system:kube-scheduler", ("system:authenticated",)), LEASE, PriorityLevel.SYSTEM),
        (service_account_user("shop", "operator", "1"), LEASE, PriorityLevel.SYSTEM),
        (service_account_user("shop", "operator", "1"), LEASES, PriorityLevel.WORKLOADS),
        (User("system:kube-scheduler", ("system:authenticated",)), PODS, PriorityLevel.CONTROLLERS),
        (service_account_user("kube-system", "gc", "1"), PODS, PriorityLevel.CONTROLLERS),
        (service_account_user("kube-admiral-system", "agent", "1"), PODS, PriorityLevel.CONTROLLERS),
        (service_account_user("kube-system-of-mine", "x", "1"), PODS, PriorityLevel.WORKLOADS),
        (User("jane", ("system:authenticated",)), PODS, PriorityLevel.WORKLOADS),
        (User("jane", ("system:authenticated",)), LEASE, PriorityLevel.WORKLOADS),
        # The group alone does not make a node.
        (User("jane", ("system:nodes", "system:authenticated")), PODS, PriorityLevel.WORKLOADS),
        (ANONYMOUS, PODS, PriorityLevel.CATCH_ALL),
        (User("jane", ("system:unauthenticated",)), PODS, PriorityLevel.CATCH_ALL),
    ],
)
def test_the_level_follows_user_and_attributes(user: User, attributes: Attributes, level: PriorityLevel) -> None:
    assert classify(user, attributes, ("kube-system", "kube-admiral-system")) is level
