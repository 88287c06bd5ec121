"""CollectedStatus and ClusterCollectedStatus: fields of the member objects, by cluster (docs/reference/kinds.md)."""

from typing import ClassVar

from federation.api.resources import CLUSTER_COLLECTED_STATUSES, COLLECTED_STATUSES
from federation.api.v1alpha1.base import AnyValue, DateTime, Definition, Kind, Model


class CollectedFields(Model):
    """The fields of the object in one cluster."""

    cluster: str
    """The name of the cluster."""
    collected_fields: AnyValue
    """The fields, nested as in the member object."""
    error: str | None = None
    """The reason why fields could not be collected."""
    stale: bool | None = None
    """Whether the cluster does not answer, so that the fields are the last known ones. An extension of this project."""


class CollectedStatus(Kind):
    """CollectedStatus holds fields of a namespaced object's member objects, by cluster."""

    DEFINITION: ClassVar[Definition] = Definition(COLLECTED_STATUSES, "cs", has_status=False)

    clusters: list[CollectedFields]
    """The fields by cluster."""
    last_update_time: DateTime
    """When the fields were last written."""


class ClusterCollectedStatus(Kind):
    """ClusterCollectedStatus holds fields of a cluster-scoped object's member objects, by cluster."""

    DEFINITION: ClassVar[Definition] = Definition(CLUSTER_COLLECTED_STATUSES, "ccs", has_status=False)

    clusters: list[CollectedFields]
    """The fields by cluster."""
    last_update_time: DateTime
    """When the fields were last written."""
