"""MaintenanceBudget: how much of a team may be on its way to other clusters."""

from typing import ClassVar

from federation.api.resources import CORE_GROUP
from federation.api.v1alpha1.base import Definition, Kind, Model, NonNegative
from federation.apimachinery.resources import Resource

MAINTENANCE_BUDGETS = Resource(CORE_GROUP, "v1alpha1", "MaintenanceBudget", "maintenancebudgets")


class MaintenanceBudgetSpec(Model):
    """The limits of a team."""

    replicas: NonNegative
    """Replicas of the team that may be on their way to another cluster at a time."""
    closed: bool = False
    """Whether nothing of the team is decided now."""
    clusters: list[str] = []
    """Clusters in maintenance: the team uses others if it can."""


class MaintenanceBudget(Kind):
    """MaintenanceBudget limits the moves of the objects with the label `team` that has its name."""

    DEFINITION: ClassVar[Definition] = Definition(MAINTENANCE_BUDGETS, has_status=False)

    spec: MaintenanceBudgetSpec
