"""ChangeFreeze: times in which clusters get no changes. One of our own kinds.

Reference: docs/reference/freezes.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import CHANGE_FREEZES
from federation.api.v1alpha1.base import AGE, Column, Definition, Kind, Model
from federation.api.v1alpha1.clusterdisruptionbudget import MaintenanceWindow
from federation.api.v1alpha1.common import LabelSelector


class FrozenChange(StrEnum):
    """Moves are those of objects between clusters, Evictions those out of lost, drained and unhealthy ones, Updates are
    new contents of objects that exist in a cluster.
    """

    EVICTIONS = "Evictions"
    MOVES = "Moves"
    UPDATES = "Updates"


class ChangeFreezeSpec(Model):
    """The frozen changes, their places and times."""

    cluster_selector: LabelSelector | None = None
    """The labels of the clusters; absent or empty selects all clusters."""
    holds: Annotated[
        list[FrozenChange] | None,
        Field(min_length=1, max_length=3, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = None
    """The changes that wait for the end of the window; absent means all."""
    namespaces: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=63)]] | None,
        Field(max_length=256, json_schema_extra={"x-kubernetes-list-type": "set"}),
    ] = None
    """The namespaces whose objects are frozen; absent means all objects, also those without a namespace."""
    reason: Annotated[str, Field(min_length=1, max_length=256)]
    """The reason for the freeze, and the contact for exceptions. Messages quote it."""
    windows: Annotated[list[MaintenanceWindow], Field(min_length=1, max_length=32)]
    """When it holds."""


class ChangeFreeze(Kind):
    """ChangeFreeze names times in which objects in a set of clusters are not moved and not changed."""

    DEFINITION: ClassVar[Definition] = Definition(
        CHANGE_FREEZES,
        "cf",
        has_status=False,
        columns=(Column("Holds", ".spec.holds"), Column("Reason", ".spec.reason"), AGE),
    )

    spec: ChangeFreezeSpec
