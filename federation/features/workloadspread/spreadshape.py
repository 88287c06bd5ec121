"""The shape of WorkloadSpreads in a decision: the subsets of the workload, and the tolerations of its pods."""

from dataclasses import replace

from federation.features.workloadspread.rules.compiledspread import compile_spread, target_key
from federation.scheduling.chain import Shape
from federation.scheduling.framework.division import SUBSETS
from federation.scheduling.framework.types import SchedulingMode, SchedulingUnit
from federation.scheduling.question import Question
from federation.scheduling.workloadspreads import Spread, SpreadIndex, spread_of_unit


def with_tolerations(unit: SchedulingUnit, spread: Spread) -> SchedulingUnit:
    """Return the unit with the tolerations of all subsets.

    Subsets open nodes to their pods. Without them, a cluster that has only such nodes would be infeasible.
    """
    if not spread.tolerations:
        return unit
    needs = replace(unit.node_needs, tolerations=(*unit.node_needs.tolerations, *spread.tolerations))
    return replace(unit, node_needs=needs)


class ClusterSpreads(SpreadIndex):
    """The WorkloadSpreads of a control plane."""

    def __init__(self) -> None:
        super().__init__(compile_spread, target_key)


class InSubsets(Shape):
    """The WorkloadSpread of the workload: it divides in Divide mode."""

    name = "workload-spread"
    reads = (ClusterSpreads,)

    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit with its subsets."""
        spread = question.spread
        if spread is None:
            return unit
        unit = with_tolerations(unit, spread)
        if unit.mode is not SchedulingMode.DIVIDE:
            return unit
        subsets = spread_of_unit(spread, question.federated, unit.desired_replicas or 0, question.snapshot)
        return SUBSETS.on(unit, subsets)


STEPS = (InSubsets(),)
