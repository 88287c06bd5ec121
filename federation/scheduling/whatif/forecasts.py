"""Forecasts of changes that follow from those of a plan, by features that know their kinds. A protocol. Pure."""

from collections.abc import Callable, Sequence
from datetime import datetime

from federation.scheduling.whatif.state import ObjectChange, ObjectSet

Forecasting = Callable[[Sequence[ObjectChange], ObjectSet, datetime], tuple[list[ObjectChange], list[str]]]
"""Returns further changes that follow from the changes, of the objects after them, and sentences about these."""


def with_forecasts(
    changes: Sequence[ObjectChange], before: ObjectSet, forecasts: Sequence[Forecasting], now: datetime
) -> tuple[list[ObjectChange], list[str]]:
    """Return the changes that follow, and sentences about them. A forecast sees the changes of earlier ones."""
    found: dict[object, ObjectChange] = {}
    texts: list[str] = []
    for forecast in forecasts:
        after = before.with_changes([*changes, *found.values()])
        further, told = forecast([*changes, *found.values()], after, now)
        found |= {(each.resource, each.namespace, each.name): each for each in further}
        texts += told
    return list(found.values()), texts
