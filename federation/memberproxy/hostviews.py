"""What the host's API serves of members: pods, the metrics of pods and nodes, and `federatedclusters/proxy`."""

from dataclasses import replace
from typing import Final, Protocol

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import NODE_METRICS, POD_METRICS, PODS, Resource
from federation.apiserver.http.connectors import Connector
from federation.apiserver.http.readers import Reader
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo, PrinterColumn
from federation.apiserver.semantics.schema.model import ANYTHING
from federation.apiserver.semantics.strategies.base import Strategy
from federation.client.pool import ClusterPool
from federation.memberproxy.connector import MemberProxy
from federation.memberproxy.mergedreader import MergedOptions, MergedReader
from federation.memberproxy.placedclusters import EveryCluster, Visibility
from federation.memberproxy.podconnector import POD_SUBRESOURCES, PodConnector

_CLUSTER: Final = PrinterColumn(
    "Cluster",
    "string",
    ".metadata.annotations." + names.MEMBER_CLUSTER.replace(".", r"\."),
    "The cluster that runs the pod.",
    priority=1,
)


class Host(Protocol):
    """The server of the host's API, before it runs."""

    @property
    def registry(self) -> Registry:
        """The host's own objects."""
        ...

    def connect(self, resource: Resource, subresource: str, connector: Connector) -> None:
        """Answer a subresource by a connector."""
        ...

    def read_from(self, resource: Resource, reader: Reader) -> None:
        """Answer reads of a kind by a reader."""
        ...


def serve_members(
    server: Host, pool: ClusterPool, placed: Visibility, clock: Clock, options: MergedOptions | None = None
) -> None:
    """Serve objects of members on the host. Call it before the server runs."""
    proxy, registry = MemberProxy(pool), server.registry
    server.connect(FEDERATED_CLUSTERS, "proxy", proxy)
    pods = MergedReader(PODS, registry, pool, placed, clock, options)
    server.read_from(PODS, pods)
    info = registry.kinds.lookup(PODS.group, PODS.version, PODS.plural)
    registry.kinds.replace(PODS.group, PODS.plural, [replace(info, columns=(_CLUSTER,))])
    for subresource in POD_SUBRESOURCES:
        server.connect(PODS, subresource, PodConnector(pods, proxy, registry))
    for resource, visibility in ((POD_METRICS, placed), (NODE_METRICS, EveryCluster(pool))):
        registry.kinds.replace(resource.group, resource.plural, [_metrics(resource)])
        server.read_from(resource, MergedReader(resource, None, pool, visibility, clock, options))


def _metrics(resource: Resource) -> KindInfo:
    # As a custom kind, because the built-in schemas do not describe it.
    return KindInfo(
        resource,
        resource.kind.lower(),
        f"{resource.kind}List",
        Strategy(),
        lambda: ANYTHING,
        verbs=("get", "list"),
        columns=(_CLUSTER,),
        is_custom=True,
    )
