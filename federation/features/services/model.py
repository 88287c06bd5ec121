"""ServiceExport and ServiceImport of multicluster.x-k8s.io/v1alpha1: a Service across clusters.

Reference: docs/reference/kinds.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import SERVICE_EXPORTS, SERVICE_IMPORTS
from federation.api.v1alpha1.base import Column, Definition, Int32, Kind, Model
from federation.api.v1alpha1.common import Condition


class ServiceExportStatus(Model):
    """How the export is going."""

    conditions: Annotated[
        list[Condition] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = None
    """The aspects of the export's state."""


class ServiceExport(Kind):
    """ServiceExport makes the Service of the same name available to the other clusters."""

    DEFINITION: ClassVar[Definition] = Definition(
        SERVICE_EXPORTS, "svcex", columns=(Column("Age", ".metadata.creationTimestamp", "date"),)
    )

    status: ServiceExportStatus | None = None


class ServiceImportType(StrEnum):
    """Whether the imported Service has an address of its own."""

    CLUSTER_SET_IP = "ClusterSetIP"
    HEADLESS = "Headless"


class ServicePort(Model):
    """A port of the Service."""

    app_protocol: str | None = None
    """The application protocol."""
    name: str | None = None
    """The name of the port."""
    port: Int32
    """The port number."""
    protocol: str = "TCP"
    """TCP, UDP or SCTP."""


class ClientIPConfig(Model):
    """Session affinity by client address."""

    timeout_seconds: Int32 | None = None
    """How long a session stays on one endpoint."""


class SessionAffinityConfig(Model):
    """The configuration of session affinity."""

    client_ip: Annotated[ClientIPConfig | None, Field(alias="clientIP")] = None
    """Session affinity by client address."""


class ServiceImportSpec(Model):
    """The Service as it is seen by its importers."""

    ips: Annotated[list[str] | None, Field(max_length=1)] = None
    """The address of the Service."""
    ports: Annotated[list[ServicePort], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})]
    """The ports of the Service."""
    session_affinity: str | None = None
    """None or ClientIP."""
    session_affinity_config: SessionAffinityConfig | None = None
    """The configuration of session affinity."""
    type: ServiceImportType
    """Whether the Service has an address of its own."""


class ExportingCluster(Model):
    """A cluster that exports the Service."""

    cluster: str
    """The name of the cluster."""


class ServiceImportStatus(Model):
    """Where the Service comes from."""

    clusters: Annotated[
        list[ExportingCluster] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["cluster"]}),
    ] = None
    """The clusters that export the Service."""


class ServiceImport(Kind):
    """ServiceImport is a Service that is exported by other clusters."""

    DEFINITION: ClassVar[Definition] = Definition(
        SERVICE_IMPORTS,
        "svcim",
        columns=(
            Column("Type", ".spec.type"),
            Column("IP", ".spec.ips"),
            Column("Age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: ServiceImportSpec | None = None
    status: ServiceImportStatus | None = None
