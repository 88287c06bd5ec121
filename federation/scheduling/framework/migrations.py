"""Parts of a unit about replicas that leave clusters: by observation of their pods, or by a user's wish.

Part of the public plugin API.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from federation.planning.placement.failback import Offers
from federation.scheduling.framework.shapekeys import ShapeKey


@dataclass(frozen=True, slots=True)
class AutoMigration:
    """Feedback about replicas that a member cannot run (docs/reference/auto-migration.md)."""

    keep_unschedulable: bool = False
    estimated_capacity: Mapping[str, int] = field(default_factory=dict)
    scheduled_replicas: Mapping[str, int] = field(default_factory=dict)
    offers: Offers = field(default_factory=Offers)
    """Recovered capacity that may be tried."""
    ready_replicas: Mapping[str, int] = field(default_factory=dict)
    openings: Mapping[str, int] = field(default_factory=dict)
    """Pending replicas that fit by an exact count, where the rounded report may show less capacity."""


@dataclass(frozen=True, slots=True)
class CustomMigration:
    """A migration that the user requested: limits per cluster, and clusters that are unavailable until a time."""

    limited_capacity: Mapping[str, int] = field(default_factory=dict)
    unavailable_until: Mapping[str, datetime] = field(default_factory=dict)


AUTO_MIGRATION = ShapeKey("auto_migration", AutoMigration())
CUSTOM_MIGRATION = ShapeKey("custom_migration", CustomMigration())
