"""ClusterDisruptionBudget: how many clusters of a set may be unavailable at a time, and when. One of our own kinds.

Reference: docs/reference/failover.md.
"""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.resources import CLUSTER_DISRUPTION_BUDGETS
from federation.api.v1alpha1.base import AGE, Column, DateTime, Definition, Duration, Kind, Model
from federation.api.v1alpha1.common import LabelSelector


class MaintenanceWindow(Model):
    """A span of time: `start` and `end` for one time, or `schedule` and `duration`."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.schedule) == has(self.duration)"
                    " && has(self.start) == has(self.end) && has(self.schedule) != has(self.start)",
                    "message": "give either schedule and duration, or start and end",
                },
                {"rule": "!has(self.start) || self.start < self.end", "message": "start must be before end"},
            ]
        }
    )

    duration: Annotated[Duration, Field(pattern="^[^-]*[1-9]")] | None = None
    """How long each window lasts, for example 4h; more than 0s."""
    end: DateTime | None = None
    """The end of a single window."""
    schedule: Annotated[str | None, Field(max_length=100)] = None
    """When windows begin, in the five fields of a CronJob's schedule: `0 22 * * 5`."""
    start: DateTime | None = None
    """The start of a single window."""
    time_zone: Annotated[str | None, Field(max_length=64)] = None
    """The time zone of the schedule, for example Europe/Berlin; absent means UTC."""


class ClusterDisruptionBudgetSpec(Model):
    """The clusters, the limit and the windows."""

    cluster_selector: LabelSelector | None = None
    """The labels of the clusters; absent or empty selects all clusters."""
    max_unavailable: Annotated[
        int | str,
        Field(
            json_schema_extra={
                "x-kubernetes-int-or-string": True,
                "x-kubernetes-validations": [
                    {
                        "rule": "type(self) == string ? self.matches('^[0-9]{1,3}%$') : self >= 0",
                        "message": "must be a number that is not negative, or a percentage",
                    }
                ],
            }
        ),
    ]
    """How many of the clusters may be unavailable because one of them is drained: a number, or a percentage of the
    clusters, rounded up. Clusters that are not ready count."""
    windows: Annotated[list[MaintenanceWindow] | None, Field(max_length=32)] = None
    """When these clusters may be drained; absent means at any time. Outside of them, a drain pauses."""


class ClusterDisruptionBudget(Kind):
    """ClusterDisruptionBudget limits how many clusters of a set are drained at a time, and when."""

    DEFINITION: ClassVar[Definition] = Definition(
        CLUSTER_DISRUPTION_BUDGETS,
        "cdb",
        has_status=False,
        columns=(Column("Max-Unavailable", ".spec.maxUnavailable"), AGE),
    )

    spec: ClusterDisruptionBudgetSpec
