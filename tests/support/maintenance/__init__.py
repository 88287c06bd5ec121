"""A feature outside the product: a maintenance budget per team. It shows what a feature needs that holds, counts and scores.

While a budget is closed nothing of its team is decided. Of what is decided, a few replicas move at a time. Clusters in
maintenance are chosen last. The whole feature is this folder, and a line in the catalogue.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from federation.featureapi.feature import Feature

if TYPE_CHECKING:
    from federation.api.v1alpha1.base import Kind
    from federation.scheduling.chain import Step


def _kinds() -> "Sequence[type[Kind]]":
    from tests.support.maintenance.model import MaintenanceBudget

    return (MaintenanceBudget,)


def _steps() -> "Sequence[Step]":
    from tests.support.maintenance.steps import STEPS

    return STEPS


FEATURE = Feature("maintenance", page="maintenance.md", kinds=_kinds, steps=_steps)
