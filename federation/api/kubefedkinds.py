"""KubeFed's kinds: the federated kinds with the kinds of their templates, and ReplicaSchedulingPreference.

The models are in `features/kubefed/model`, the rules in docs/reference/kubefed.md. KubeFed creates a federated kind for
any kind on request; here they are the ones of its default installation and the other kinds of workloads and claims.
"""

from dataclasses import dataclass

from federation.apimachinery.resources import (
    CLUSTER_ROLES,
    CONFIGMAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INGRESSES,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    REPLICA_SETS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)

CORE_GROUP = "core.kubefed.io"
"""KubeFed's own configuration, which is not served."""
TYPES_GROUP = "types.kubefed.io"
SCHEDULING_GROUP = "scheduling.kubefed.io"
REPLICA_PREFERENCES = Resource(
    SCHEDULING_GROUP, "v1alpha1", "ReplicaSchedulingPreference", "replicaschedulingpreferences"
)


@dataclass(frozen=True, slots=True)
class FederatedKind:
    """A federated kind, and the kind of the objects that its template describes."""

    resource: Resource
    target: Resource


def _federated(target: Resource) -> FederatedKind:
    # A FederatedNamespace is in the namespace that it describes.
    namespaced = target.namespaced or target == NAMESPACES
    kind, plural = f"Federated{target.kind}", f"federated{target.plural}"
    return FederatedKind(Resource(TYPES_GROUP, "v1beta1", kind, plural, namespaced), target)


_TARGETS = (
    CLUSTER_ROLES,
    CONFIGMAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INGRESSES,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    REPLICA_SETS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
)
FEDERATED_KINDS = {each.resource.kind: each for each in map(_federated, _TARGETS)}
"""The federated kinds by name."""
FEDERATED_CONFIG_MAPS = FEDERATED_KINDS["FederatedConfigMap"].resource
FEDERATED_NAMESPACES = FEDERATED_KINDS["FederatedNamespace"].resource
FEDERATED_SECRETS = FEDERATED_KINDS["FederatedSecret"].resource
SCALED_KINDS = ("FederatedDeployment", "FederatedReplicaSet")
"""The kinds that a ReplicaSchedulingPreference can divide."""
