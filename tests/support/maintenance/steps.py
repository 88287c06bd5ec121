"""The steps of maintenance budgets in a decision: a gate that holds, a score, and a permit that counts."""

from dataclasses import dataclass

from federation.apimachinery.objectshape import revision_of
from federation.planning.guard.losses import held_placement
from federation.scheduling.answers import Deferred, Wait
from federation.scheduling.chain import Gate, Permit, Shape
from federation.scheduling.framework.scoring import PREFERENCES
from federation.scheduling.framework.types import Cluster, SchedulingUnit
from federation.scheduling.proposal import Proposal
from federation.scheduling.question import Question
from federation.scheduling.world import World
from tests.support.maintenance.budgets import MOVE, Budgets, Move

CLOSED, USED_UP = "MaintenanceClosed", "MaintenanceBudgetUsed"


class Open(Gate):
    """A team whose budget is closed."""

    name = "maintenance-open"
    reads = (Budgets,)

    def ask(self, question: Question) -> Wait | Deferred | None:
        """Wait while it is closed, if there is anything to decide."""
        found = _budgets(question.world).find(question.federated)
        if found is None or not found[1].get("closed"):
            return None
        is_due = question.comparison.is_due or not question.attempt.current()
        return Wait(CLOSED, f"maintenance of team {found[0][1]} is closed") if is_due else Deferred(question.comparison)


@dataclass(frozen=True)
class _InMaintenance:
    clusters: frozenset[str]
    name: str = "Maintenance"

    def score(self, cluster: Cluster) -> int:
        return int(cluster.name not in self.clusters)


class ElsewhereFirst(Shape):
    """Clusters in maintenance are chosen last."""

    name = "maintenance-score"

    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit with the score."""
        found = _budgets(question.world).find(question.federated)
        clusters = frozenset(found[1].get("clusters") or ()) if found is not None else frozenset()
        return PREFERENCES.on(unit, (*PREFERENCES.of(unit), _InMaintenance(clusters))) if clusters else unit


class WithinBudget(Permit):
    """A move that exceeds what is left of the team's budget."""

    name = "maintenance-budget"

    def permit(self, proposal: Proposal) -> Proposal | Wait:
        """Let the object stay while others move; a move that no budget could ever pay goes on alone."""
        budgets, found = _budgets(proposal.world), _move(proposal)
        budgets.waiting.discard(proposal.key)
        if found is None:
            return proposal
        budget, move, limit = found
        used = budgets.used(budget, proposal.key)
        if not used or used + move.replicas <= limit:
            return proposal
        budgets.waiting.add(proposal.key)
        text = f"it would move {move.replicas} replicas of team {move.team}, and {used} of {limit} are on their way"
        before, after = proposal.attempt.current(), proposal.decision.placements
        return Wait(USED_UP, text, None, held_placement(before, after, proposal.due.unit.desired_replicas))

    def claim(self, proposal: Proposal) -> Proposal:
        """Take the replicas that move."""
        if (found := _move(proposal)) is None:
            return proposal
        _budgets(proposal.world).ledger.assume(proposal.key, found[1], revision_of(proposal.attempt.federated))
        return proposal.recording(MOVE.entry(found[1]))


def _budgets(world: World) -> Budgets:
    found = world.index(Budgets)
    assert found is not None  # a step of the chain reads it
    return found


def _move(proposal: Proposal) -> tuple[tuple[str, str], Move, int] | None:
    """Return the budget that pays, the move and the limit; None for an object that does not move or has no budget."""
    federated, after = proposal.attempt.federated, proposal.decision.placements
    before, each = proposal.attempt.current(), proposal.due.unit.desired_replicas or 1
    left = sum(max(0, _count(before[name], each) - _count(after.get(name, 0), each)) for name in before)
    found = _budgets(proposal.world).find(federated)
    if found is None or not left:
        return None
    generation = int(federated["metadata"].get("generation") or 0) + 1
    return found[0], Move(found[0][1], left, generation), int(found[1]["replicas"])


def _count(count: int | None, each: int) -> int:
    return each if count is None else count


STEPS = (Open(), ElsewhereFirst(), WithinBudget())
