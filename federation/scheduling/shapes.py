"""The shapes of the spine: what other workloads, causes and quotas mean for the unit of an object. Pure."""

from dataclasses import replace
from typing import Any

from federation.scheduling.affinity.relations import relations_of
from federation.scheduling.chain import Shape
from federation.scheduling.framework.moving import ENDED_TOLERATIONS
from federation.scheduling.framework.relations import RELATIONS
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.movecauses import with_causes
from federation.scheduling.question import Question


class Circumstances(Shape):
    """Time, and other decisions: tolerations that ended, replicas that no report shows, volumes without an object."""

    name = "circumstances"

    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit with what only this moment says."""
        changes: dict[str, Any] = {}
        if question.occasion.assumed:
            changes["assumed"] = question.occasion.assumed
        if question.ended:
            unit = ENDED_TOLERATIONS.on(unit, question.ended)
        if unit.sticky and not question.attempt.current():
            changes["sticky"] = False  # volumes of an earlier object are no placement
        return replace(unit, **changes) if changes else unit


class Relations(Shape):
    """Rules about other workloads."""

    name = "relations"

    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit with its relations."""
        if (recorded := question.occasion.recorded) is not None:
            return recorded.related(unit)
        if question.workload is None:
            return unit
        found = relations_of(question.world.workloads, question.workload, unit, question.snapshot.by_name)
        return RELATIONS.on(unit, found)


class Causes(Shape):
    """The causes that may move a unit that runs."""

    name = "causes"

    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit with its causes."""
        return with_causes(unit, question.policy, question.comparison, question.annotations, question.quiet)


class QuotaOfNamespace(Shape):
    """The part of the namespace's quota that is left for the unit."""

    name = "quota"

    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit with its quota."""
        if (recorded := question.occasion.recorded) is not None:
            return recorded.limited(unit, question.snapshot)
        return question.world.quotas.limited(unit, question.federated, question.type_, question.snapshot.by_name)


SHAPES = (Circumstances(), Relations(), Causes(), QuotaOfNamespace())
