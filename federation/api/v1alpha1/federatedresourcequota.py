"""FederatedResourceQuota: what the workloads of a namespace may request in all clusters together. One of our own kinds.

Its name and fields are Karmada's. Reference: docs/reference/quotas.md.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import FEDERATED_RESOURCE_QUOTAS
from federation.api.v1alpha1.base import AGE, Column, Definition, Kind, Model, QuantityText

_LIMIT = Field(
    min_length=1,
    max_length=30,
    json_schema_extra={
        "x-kubernetes-validations": [
            {
                "rule": "self.all(name, !string(self[name]).startsWith('-'))",
                "message": "quantities must not be negative",
            },
            {
                "rule": "self.all(name, name.contains('/') || name in ['cpu', 'memory', 'ephemeral-storage', 'pods',"
                " 'requests.cpu', 'requests.memory', 'requests.ephemeral-storage'])",
                "message": "a resource is cpu, memory, ephemeral-storage, pods, or has a domain, such as"
                " nvidia.com/gpu; limits of containers are not counted",
            },
            {
                "rule": "self.all(name, !name.startsWith('count/') && !name.startsWith('limits.')"
                " && !name.contains('.storageclass.storage.k8s.io/'))",
                "message": "numbers of objects, limits of containers and storage are not counted over clusters; remove"
                " count/, limits. and storageclass.storage.k8s.io names, or write a ResourceQuota, which acts in each"
                " cluster",
            },
        ]
    },
)
Limits = Annotated[dict[str, QuantityText], _LIMIT]


class FederatedResourceQuotaSpec(Model):
    """The limits."""

    overall: Limits
    """The most that all replicas in all clusters may request together, by resource; pods are counted."""


class ClusterQuotaStatus(Model):
    """The resources used in one cluster."""

    cluster_name: str
    """The name of the cluster."""
    used: dict[str, QuantityText] | None = None
    """The requests of the replicas in the cluster."""


class FederatedResourceQuotaStatus(Model):
    """The resources used, and the limits in force."""

    aggregated_status: list[ClusterQuotaStatus] | None = None
    """The resources used in each cluster."""
    overall: dict[str, QuantityText] | None = None
    """The limits in force."""
    overall_used: dict[str, QuantityText] | None = None
    """The resources used in all clusters together."""


class FederatedResourceQuota(Kind):
    """FederatedResourceQuota limits what the workloads of a namespace request in all clusters together."""

    DEFINITION: ClassVar[Definition] = Definition(
        FEDERATED_RESOURCE_QUOTAS,
        "frq",
        has_status=True,
        also_served=("v1beta1",),
        columns=(Column("Overall", ".status.overall"), Column("Used", ".status.overallUsed"), AGE),
    )

    spec: FederatedResourceQuotaSpec
    status: FederatedResourceQuotaStatus | None = None
