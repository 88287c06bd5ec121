"""Views of members in the host's API: pods, nodes, their metrics and events, and `federatedclusters/proxy`.

Decision: docs/decisions/0056-pods-of-members-are-read-through.md
"""

from dataclasses import replace
from typing import Final, Protocol

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import EVENTS, NODE_METRICS, NODES, POD_METRICS, PODS, Resource
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.connectors import Connector
from federation.apiserver.http.readers import Reader
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo, PrinterColumn
from federation.apiserver.semantics.schema.model import ANYTHING
from federation.apiserver.semantics.strategies.base import Strategy
from federation.client.pool import ClusterPool
from federation.memberproxy import custommetricvalues
from federation.memberproxy.connector import MemberProxy
from federation.memberproxy.custommetrics import CustomMetricsConnector
from federation.memberproxy.mergedreader import MergedOptions, MergedReader
from federation.memberproxy.placedclusters import EveryCluster, Visibility
from federation.memberproxy.podconnector import POD_SUBRESOURCES, PodConnector
from federation.memberproxy.search import Search

_ABOUT: Final = "involvedObject.name="
_CLUSTER: Final = PrinterColumn(
    "Cluster",
    "string",
    ".metadata.annotations." + names.MEMBER_CLUSTER.replace(".", r"\."),
    "The cluster that has the object.",
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
    proxy, registry = MemberProxy(pool, placed=placed, search=Search(pool, placed, clock, options)), server.registry
    server.connect(FEDERATED_CLUSTERS, "proxy", proxy)
    everywhere = EveryCluster(pool)
    pods = MergedReader(PODS, registry, pool, placed, clock, options)
    readers = [pods, MergedReader(NODES, registry, pool, everywhere, clock, options)]
    for reader in readers:
        resource = reader.resource
        info = registry.kinds.lookup(resource.group, resource.version, resource.plural)
        registry.kinds.replace(resource.group, resource.plural, [replace(info, columns=(_CLUSTER,))])
        server.read_from(resource, reader)
    server.read_from(EVENTS, EventsOfPods(EVENTS, registry, pool, placed, clock, options))
    for subresource in POD_SUBRESOURCES:
        server.connect(PODS, subresource, PodConnector(pods, proxy, registry))
    for resource, visibility in ((POD_METRICS, placed), (NODE_METRICS, everywhere)):
        registry.kinds.replace(resource.group, resource.plural, [metrics_kind(resource)])
        server.read_from(resource, MergedReader(resource, None, pool, visibility, clock, options))
    custom = CustomMetricsConnector(pool, placed, everywhere, options)
    for version in custommetricvalues.VERSIONS:
        group = Resource(custommetricvalues.GROUP, version, "MetricValueList", "")
        server.connect(group, "", custom)
        registry.apis.connect(group.group, version)


class EventsOfPods(MergedReader):
    """Events about one object, for `kubectl describe`: also those of members, if its name can be that of theirs."""

    def answers(self, request: Request) -> bool:
        """Return whether the request is for the events about one object."""
        return _ABOUT in request.query.get("fieldSelector", "") and super().answers(request)


def metrics_kind(resource: Resource) -> KindInfo:
    """Return the kind of metrics that a `Reader` answers."""
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
