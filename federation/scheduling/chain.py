"""The chain of a decision: its gates, shapes and permits, from the spine and from the wings, in one order.

A `Gate` says whether an object may be decided now. A `Shape` adds what a feature knows about the object to the unit
that the engine places. A `Permit` says whether the decision may be written, or which part of it. `assessment.assess`
runs gates and shapes and `permit` the permits, for single and joint writes, plans and replays alike, so each step is
written once. The order is the table `ORDER`, because the first step that answers is the one that people read: an object
with two reasons to wait shows the earlier one.

Decisions: docs/decisions/0233-a-step-of-a-decision-is-a-plugin.md, docs/decisions/0244-a-permit-is-a-step.md
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from federation.apimachinery.resources import Resource
from federation.scheduling.answers import Answer, Leave, Wait
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.proposal import Proposal
from federation.scheduling.question import Question
from federation.scheduling.worldobjects import Index

ORDER = (
    "no-scheduling",
    "policy",
    "profile",
    "finished",
    "queue",
    "claims",
    "pod-group",
    "suspension",
    "volume-move",
    "",  # gates that are not listed
    "unchanged",
    "volumes-listed",
    # shapes, in the order in which one reads what another wrote
    "circumstances",
    "workload-spread",
    "admission",
    "relations",
    "causes",
    "quota",
    # permits; each narrows what the next one reads
    "definition",
    "volumes",
    "failover",
    "freeze",
    "guard",
    "queue-place",
    "volume-copies",
    "state",
)
"""The names of all steps. A gate that is not listed comes where the empty name is, a shape or permit after all others.

Volumes come before failover and the guard, which keep or hold what must not leave them. Failover comes before the
freeze, which holds only what would move now, and the guard after it: what a freeze holds is not counted as a move.
State is handed over by the copies that leave in the end.
"""


class _Step:
    name: ClassVar[str]
    """Its place in `ORDER`."""
    about: ClassVar[frozenset[str]] = frozenset()
    """Annotations of federated objects: a gate or permit is asked about those that have one, without any about all."""
    reads: ClassVar[tuple[type[Index], ...]] = ()
    """The kinds of its feature that it reads. Changes of them wake what they affect, and are in plans and records."""


class Gate(_Step, ABC):
    """A reason why an object is not decided now."""

    @abstractmethod
    def ask(self, question: Question) -> Answer | None:
        """Return what becomes of the object instead of a decision, None to let it go on."""

    def calls(self, question: Question) -> bool:
        """Return whether what it lets go on is decided although nothing about it changed."""
        del question
        return False


class Shape(_Step, ABC):
    """An addition of a feature to the unit of an object."""

    @abstractmethod
    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit with it; the same unit for an object that the feature is not about."""


class Permit(_Step, ABC):
    """The last word before a decision is written."""

    asks_of_failures: ClassVar[bool] = False
    """Whether it is asked of decisions that found no place, too."""

    @abstractmethod
    def permit(self, proposal: Proposal) -> Proposal | Wait | Leave:
        """Return what may be written now: all of it, a part of it, or what happens instead."""

    def claim(self, proposal: Proposal) -> Proposal:
        """Take what the decision uses of accounts, once all permits let it go on; return it with the claim to write."""
        return proposal


Step = Gate | Shape | Permit


@dataclass(frozen=True, slots=True)
class Chain:
    """All steps of a decision but the engine's, in their order, and the kinds of features that they read."""

    gates: tuple[Gate, ...]
    shapes: tuple[Shape, ...]
    permits: tuple[Permit, ...]
    reads: tuple[type[Index], ...]
    kinds: tuple[Resource, ...]
    """Those of `reads`."""


def to_chain(steps: Iterable[Step]) -> Chain:
    """Return the chain of these steps; of two with the same place, the first one goes first."""
    ordered = sorted(steps, key=_place)
    gates = tuple(step for step in ordered if isinstance(step, Gate))
    shapes = tuple(step for step in ordered if isinstance(step, Shape))
    permits = tuple(step for step in ordered if isinstance(step, Permit))
    reads = tuple(dict.fromkeys(each for step in ordered for each in step.reads))
    return Chain(gates, shapes, permits, reads, tuple(each.resource for each in reads))


def _place(step: Step) -> int:
    if step.name in ORDER:
        return ORDER.index(step.name)
    return ORDER.index("") if isinstance(step, Gate) else len(ORDER)


def permit(permits: Iterable[Permit], proposal: Proposal) -> tuple[Proposal, Wait | Leave | None]:
    """Return what the permits leave of a decision, and the answer of the one that stops it."""
    annotations = proposal.attempt.federated["metadata"].get("annotations") or {}
    asked = []
    for each in permits:
        if not (proposal.decision.is_success or each.asks_of_failures):
            continue
        if each.about and each.about.isdisjoint(annotations):
            continue
        answer = each.permit(proposal)
        if not isinstance(answer, Proposal):
            return proposal, answer
        proposal = answer
        asked.append(each)
    for each in asked:
        proposal = each.claim(proposal)
    return proposal, None
