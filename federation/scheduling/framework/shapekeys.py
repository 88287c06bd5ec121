"""The keys of shapes: what a feature adds to a unit or a policy, and its own steps read.

Part of the public plugin API. A key is in the module of its feature: `GROUPS.of(unit)` reads, `GROUPS.on(unit, value)`
adds.

Decision: docs/decisions/0261-what-a-feature-adds-to-a-unit-is-a-shape.md
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from federation.scheduling.framework.types import SchedulingUnit

T = TypeVar("T")


class Shaped(Protocol):
    """Something to which features add shapes: a unit, or a policy."""

    @property
    def shapes(self) -> Mapping[str, Any]: ...  # by the names of their keys


class ShapeKey(Generic[T]):
    """The key of a feature's shape, which only the steps of that feature read. `default`: without such a shape."""

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: T) -> None:
        self.name = name
        self.default = default

    def of(self, shaped: Shaped) -> T:
        """Return the shape of a unit or policy."""
        found: T = shaped.shapes.get(self.name, self.default)
        return found

    def on(self, unit: SchedulingUnit, value: T) -> SchedulingUnit:
        """Return the unit with the shape."""
        return replace(unit, shapes={**unit.shapes, self.name: value})
