"""The chain of a decision: its gates and shapes, from the spine and from the wings, in one order.

A `Gate` says whether an object may be decided now. A `Shape` adds what a feature knows about the object to the unit
that the engine places. `assessment.assess` runs all of them in one loop, for the control plane, plans and replays
alike, so each step is written once. The order is the table `ORDER`, because the first gate that answers is the one that
people read: an object with two reasons to wait shows the earlier one.

Decision: docs/decisions/0233-a-step-of-a-decision-is-a-plugin.md
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from federation.scheduling.answers import Answer
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.question import Question
from federation.scheduling.workloadspreads import SpreadCompiler

ORDER = (
    "no-scheduling",
    "policy",
    "profile",
    "finished",
    "queue",
    "claims",
    "pod-group",
    "suspension",
    "",  # gates that are not listed
    "unchanged",
    # shapes, in the order in which one reads what another wrote
    "circumstances",
    "workload-spread",
    "admission",
    "relations",
    "causes",
    "quota",
)
"""The names of all steps. One that is not listed comes where the empty name is."""


class Gate(ABC):
    """A reason why an object is not decided now."""

    name: ClassVar[str]
    """Its place in `ORDER`."""

    @abstractmethod
    def ask(self, question: Question) -> Answer | None:
        """Return what becomes of the object instead of a decision, None to let it go on."""

    def calls(self, question: Question) -> bool:
        """Return whether what it lets go on is decided although nothing about it changed."""
        del question
        return False


class Shape(ABC):
    """An addition of a feature to the unit of an object."""

    name: ClassVar[str]
    """Its place in `ORDER`."""

    @abstractmethod
    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit with it; the same unit for an object that the feature is not about."""


Step = Gate | Shape


@dataclass(frozen=True, slots=True)
class Chain:
    """All steps of a decision before the engine, in their order, and the reader of WorkloadSpreads."""

    gates: tuple[Gate, ...]
    shapes: tuple[Shape, ...]
    spreads: SpreadCompiler


def to_chain(steps: Iterable[Step], spreads: SpreadCompiler) -> Chain:
    """Return the chain of these steps; of two with the same place, the first one goes first."""
    ordered = sorted(steps, key=lambda step: ORDER.index(step.name if step.name in ORDER else ""))
    gates = tuple(step for step in ordered if isinstance(step, Gate))
    return Chain(gates, tuple(step for step in ordered if isinstance(step, Shape)), spreads)
