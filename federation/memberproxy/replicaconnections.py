"""Connections to members in a process that does not run the controllers, for requests of users.

Where the controllers run, the cluster controller fills the pool. In the other processes on the same database this keeps
it in step with the joined FederatedClusters and their Secrets. It never writes; when the process begins to lead, the
cluster controller takes the pool over as it is.

Decision: docs/decisions/0057-every-process-reaches-members.md
"""

from collections.abc import Callable
from contextlib import suppress

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import SECRETS, Object
from federation.client.pool import ClusterPool
from federation.runtime.informers import Informers


class ReplicaConnections:
    """Follows FederatedClusters and Secrets from its construction on. `leads` says whether the controllers run here."""

    def __init__(self, informers: Informers, pool: ClusterPool, leads: Callable[[], bool]) -> None:
        self._pool = pool
        self._leads = leads
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._secrets = informers.for_resource(SECRETS, namespace=names.SYSTEM_NAMESPACE)
        self._clusters.add_handler(self._on_cluster)
        self._secrets.add_handler(self._on_secret)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if self._leads():
            return
        if new is None:
            name = (old or {})["metadata"]["name"]
            if name in self._pool.clusters:
                self._pool.remove(name)
        elif (new.get("status") or {}).get("joinPerformed"):
            secret = self._secrets.get(names.SYSTEM_NAMESPACE, _secret_name(new))
            # The pool keeps the problem as the reason for which the cluster has no connection.
            with suppress(ConfigurationError):
                self._pool.update(new, secret)

    def _on_secret(self, _old: Object | None, new: Object | None) -> None:
        name = new["metadata"]["name"] if new is not None else ""
        for cluster in self._clusters.list() if name else ():
            if _secret_name(cluster) == name:
                self._on_cluster(None, cluster)


def _secret_name(cluster: Object) -> str:
    return str(((cluster.get("spec") or {}).get("secretRef") or {}).get("name", ""))
