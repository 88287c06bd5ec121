"""RBAC of the federation's kinds on the host: the rules of `view` and `edit`, and kinds without default rules.

Users write policies and workloads in their namespaces. FederatedObject, CollectedStatus and PropagatedVersion belong to
the control plane. Federated objects contain copies of Secrets, so reading them needs permission to read Secrets. The
result for every role, kind and verb is docs/reference/rights.md.
"""

from federation.api.resources import (
    ADVANCED_STATEFUL_SETS,
    CLONE_SETS,
    CLUSTER_COLLECTED_STATUSES,
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_PROPAGATED_VERSIONS,
    COLLECTED_STATUSES,
    CORE_GROUP,
    CRON_AUTOSCALERS,
    FEDERATED_OBJECTS,
    FEDERATED_ROLLOUTS,
    KRUISE_GROUP,
    OVERRIDE_POLICIES,
    PROPAGATED_VERSIONS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import POD_METRICS, SECRETS
from federation.apiserver.auth.bootstrappolicy import RBACOptions

FEDERATED = (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS)
REPORTS = (COLLECTED_STATUSES, CLUSTER_COLLECTED_STATUSES, PROPAGATED_VERSIONS, CLUSTER_PROPAGATED_VERSIONS)
"""Kinds in which the control plane reports; only it writes them."""
_STEERED = [FEDERATED_ROLLOUTS.plural]
"""Kinds that the control plane creates, and that users steer by their spec."""
_WRITTEN = [CRON_AUTOSCALERS.plural, OVERRIDE_POLICIES.plural, PROPAGATION_POLICIES.plural]
"""Kinds that users write in their namespaces. One that scales can do what a HorizontalPodAutoscaler can."""
_WORKLOADS = [
    f"{resource.plural}{suffix}" for resource in (CLONE_SETS, ADVANCED_STATEFUL_SETS) for suffix in ("", "/scale")
]
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]

HOST_RBAC = RBACOptions(
    rules={
        "view": [
            {"verbs": _READ, "apiGroups": [CORE_GROUP], "resources": [*_WRITTEN, *_STEERED]},
            {"verbs": _READ, "apiGroups": [KRUISE_GROUP], "resources": _WORKLOADS},
            {"verbs": ["get", "list"], "apiGroups": [POD_METRICS.group], "resources": [POD_METRICS.plural]},
        ],
        "edit": [
            {"verbs": _WRITE, "apiGroups": [CORE_GROUP], "resources": _WRITTEN},
            {"verbs": ["patch", "update"], "apiGroups": [CORE_GROUP], "resources": _STEERED},
            {"verbs": _WRITE, "apiGroups": [KRUISE_GROUP], "resources": _WORKLOADS},
        ],
    },
    retired=frozenset((resource.group, resource.plural) for resource in (*FEDERATED, *REPORTS)),
    implied={(resource.group, resource.plural): (SECRETS.group, SECRETS.plural) for resource in FEDERATED},
)
