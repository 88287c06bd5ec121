"""The verdict about a change that is reviewed: what speaks against it, and what it needs. Pure.

`reviewcomment.py` writes it as Markdown, `to_json` for programs.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from federation.apimachinery.amounts import to_count
from federation.scheduling.whatif.planresult import ObjectPlan, Plan, PlannedHold, costs_to_json, to_json, total_costs

HOURS_PER_MONTH = 730
"""A twelfth of a year, as price lists of clouds have it."""


class Objection(StrEnum):
    """Reasons that speak against a change; users allow some of them."""

    REFUSED = "refused"
    """The server refuses a manifest."""
    HELD = "held"
    """The guard would hold moves."""
    STUCK = "stuck"
    """An object cannot be scheduled."""
    UNPLACED = "unplaced"
    """More replicas than now have no cluster, or fit on no node."""
    LOST = "lost"
    """More replicas may be missing than the user allows."""


@dataclass(frozen=True, slots=True)
class Review:
    """The result for one change. `plan` is None if it could not be computed, and `refused` says why.

    `change` names the change. `notes` are about the repository. `allowed` are objections that do not count;
    `lost_max` is how many replicas of one object may be missing at worst, None for any number.
    """

    change: str
    plan: Plan | None
    refused: str = ""
    notes: Sequence[str] = ()
    allowed: Collection[str] = ()
    lost_max: int | None = None

    def objections(self) -> list[tuple[Objection, str]]:
        """Return what speaks against the change, with a sentence about each."""
        found = [(Objection.REFUSED, self.refused)] if self.refused else []
        if self.plan is None:
            return found
        found += [(Objection.HELD, hold_text(hold)) for hold in self.plan.holds]
        for obj in self.plan.objects:
            name = obj.target + (f" in {obj.namespace}" if obj.namespace else "")
            if obj.is_stuck:
                found.append((Objection.STUCK, f"{name} cannot be scheduled: {obj.reason}"))
            if (missing := obj.unplaced + obj.waiting) > obj.unplaced_before:
                found.append((Objection.UNPLACED, f"{name}: {to_count(missing, 'replica')} without room"))
            if self.lost_max is not None and obj.lost > self.lost_max:
                lost = f"{to_count(obj.lost, 'replica')} may be missing at worst, more than {self.lost_max}"
                found.append((Objection.LOST, f"{name}: {lost}"))
        return found

    @property
    def is_passed(self) -> bool:
        """Whether nothing speaks against the change that is not allowed."""
        return not any(objection not in self.allowed for objection, _ in self.objections())


def hold_text(hold: PlannedHold) -> str:
    """Return what the guard would hold, and why."""
    moves = to_count(len(hold.objects), "move")
    if hold.volumes:
        return f"the guard holds {moves} of {hold.cause}, because {hold.volumes} would stay behind"
    if not hold.size:
        return f"the guard holds {moves} of {hold.cause}"
    return (
        f"the guard holds {moves} of {hold.cause}: {hold.counted} of its {hold.size} objects would move within its"
        f" window, and {hold.allowed} may"
    )


def approvals_of(plan: Plan) -> list[str]:
    """Return the approvals that the change needs, one sentence each."""
    found = [f"{hold_text(hold)}; `fedctl approve` lets them go on" for hold in plan.holds]
    for obj in plan.changed:
        where = f" -n {obj.namespace}" if obj.namespace else ""
        found += [f"wave {wave}: fedctl rollout approve {obj.target}{where}" for wave in obj.approvals]
    return found


def lost_in_all(plan: Plan) -> tuple[int, int]:
    """Return how many replicas may be missing at worst together, and how many the changed objects have now."""
    return sum(obj.lost for obj in plan.changed), sum(map(replicas_before, plan.changed))


def replicas_before(obj: ObjectPlan) -> int:
    """Return the replicas that an object has now in all clusters."""
    return sum((row.before.replicas or 0) for row in obj.rows if row.before is not None)


def to_json_document(review: Review) -> dict[str, Any]:
    """Return the review as JSON values; the plan is without manifests."""
    document: dict[str, Any] = {
        "kind": "Review",
        "change": review.change,
        "passed": review.is_passed,
        "objections": [
            {"reason": objection, "message": message, "allowed": objection in review.allowed}
            for objection, message in review.objections()
        ],
        "notes": list(review.notes),
    }
    if review.plan is not None:
        lost, of = lost_in_all(review.plan)
        costs = costs_to_json(total_costs(review.plan.changed))
        document |= {
            "lostAtWorst": {"replicas": lost, "of": of},
            "costsPerMonth": {
                measure: {**cost, **{when: cost[when] * HOURS_PER_MONTH for when in ("before", "after")}}
                for measure, cost in costs.items()
            },
            "approvals": approvals_of(review.plan),
            "plan": without_manifests(to_json(review.plan)),
        }
    return document


def without_manifests(document: dict[str, Any]) -> dict[str, Any]:
    """Return a plan as JSON without the manifests of the members."""
    for obj in document["objects"]:
        for row in obj["clusters"]:
            for side in ("before", "after"):
                if row[side] is not None:
                    row[side]["manifest"] = {}
    return document
