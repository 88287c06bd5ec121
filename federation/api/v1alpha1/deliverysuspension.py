"""DeliverySuspension and ClusterDeliverySuspension: objects and clusters that get no writes for a while. Ours.

Reference: docs/reference/suspensions.md.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import CLUSTER_DELIVERY_SUSPENSIONS, DELIVERY_SUSPENSIONS
from federation.api.v1alpha1.base import AGE, Column, DateTime, Definition, Kind, Model
from federation.api.v1alpha1.common import LabelSelector, ResourceSelector


class DeliverySuspensionSpec(Model):
    """The objects and clusters, the reason and the end of a suspension."""

    cluster_selector: LabelSelector | None = None
    """The labels of the clusters; absent or empty selects all clusters. With `clusters`, both must match."""
    clusters: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=253)]] | None,
        Field(min_length=1, max_length=1000, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = None
    """The names of the clusters; absent means all."""
    objects: Annotated[list[ResourceSelector] | None, Field(min_length=1, max_length=256)] = None
    """The objects; absent means all objects of the namespace. The author needs the right to update each kind."""
    owner: Annotated[str, Field(min_length=1, max_length=256)]
    """The contact for questions, such as a team or an address. Messages quote it."""
    reason: Annotated[str, Field(min_length=1, max_length=256)]
    """The reason. Messages quote it."""
    until: DateTime | None = None
    """The end; absent means until the suspension is deleted."""


class ClusterDeliverySuspensionSpec(DeliverySuspensionSpec):
    """The objects and clusters, the reason and the end of a suspension."""

    namespaces: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=63)]] | None,
        Field(min_length=1, max_length=256, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = None
    """The namespaces of the objects; absent means all objects, also those without a namespace."""
    objects: Annotated[list[ResourceSelector] | None, Field(min_length=1, max_length=256)] = None
    """The objects; absent means all objects."""


_COLUMNS = (
    Column("Until", ".spec.until"),
    Column("Owner", ".spec.owner"),
    Column("Reason", ".spec.reason"),
    AGE,
)


class DeliverySuspension(Kind):
    """DeliverySuspension stops creations and updates of objects of its namespace in members."""

    DEFINITION: ClassVar[Definition] = Definition(DELIVERY_SUSPENSIONS, "dsus", has_status=False, columns=_COLUMNS)

    spec: DeliverySuspensionSpec


class ClusterDeliverySuspension(Kind):
    """ClusterDeliverySuspension stops writes and deletions of objects in members."""

    DEFINITION: ClassVar[Definition] = Definition(
        CLUSTER_DELIVERY_SUSPENSIONS, "cdsus", has_status=False, columns=_COLUMNS
    )

    spec: ClusterDeliverySuspensionSpec
