"""PlacementHold: moves that wait for approval (docs/reference/guard.md). One of our own kinds."""

from typing import ClassVar

from federation.api.resources import PLACEMENT_HOLDS
from federation.api.v1alpha1.base import AGE, Column, DateTime, Definition, Kind, Model, NonNegative


class HoldApproval(Model):
    """The approval after which the held moves go on: by whom, and why."""

    at: DateTime | None = None
    """When it was approved; set by the API server. Moves that were held later are not covered."""
    by: str | None = None
    """The user who approved it; set by the API server."""
    reason: str
    """Why; required."""


class PlacementHoldSpec(Model):
    """The held moves; only `approval` is written by users."""

    approval: HoldApproval | None = None
    """The approval; nothing moves without it."""
    cause: str
    """The common cause of most of the moves: a policy, a FederatedTypeConfig or a FederatedCluster."""
    count: NonNegative
    """The number of objects that wait."""
    objects: list[str] | None = None
    """The first objects that wait, at most 20."""


class PlacementHold(Kind):
    """PlacementHold is a change that would move more objects than the guard allows. It waits for approval."""

    DEFINITION: ClassVar[Definition] = Definition(
        PLACEMENT_HOLDS,
        "hold",
        has_status=False,
        columns=(
            Column("Cause", ".spec.cause"),
            Column("Objects", ".spec.count", "integer"),
            Column("Approved-By", ".spec.approval.by"),
            AGE,
        ),
    )

    spec: PlacementHoldSpec
