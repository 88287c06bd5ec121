"""A decision about one object in one cluster, and the questions that may come before another one. Pure.

`decide.py` takes decisions; `clusterdelivery.py` acts on them.
"""

from dataclasses import dataclass
from enum import StrEnum

from federation.delivery.rules.content import Write
from federation.delivery.rules.plan import Operation
from federation.delivery.rules.status import ClusterStatus
from federation.planning.rendering.verdicts import Verdict


class Question(StrEnum):
    """A question whose answer can change the decision."""

    LOOK_UP = "whether a member without a complete cache has the object"
    CONFIRM = "whether the member has the object"
    END = "whether the object that is gone there had finished"
    SCALER = "which autoscaler in the member owns the replicas"
    ADMISSION = "whether the host admits the object"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about one object in one cluster.

    `status` is None for a cluster that has nothing of the object and needs nothing. With an operation, it is the status
    until the operation has ended.
    """

    row: str = ""
    """The row of the table that decided."""
    operation: Operation | None = None
    status: ClusterStatus | None = None
    message: str = ""
    question: Question | None = None
    recheck_after_s: float | None = None
    write: Write | None = None
    """The content of a creation or update."""
    held: Verdict | None = None
    """The verdict of the host's admission that holds the object."""
    keeps_status: bool = False
    """Whether the status that is published stays: nothing newer is known yet."""
    is_brief: bool = False
    """Whether the reason is expected to end at once, so that publishing it would cost a write for nothing."""
    is_refusal: bool = False
    """Whether only the user can resolve it: then an Event tells it."""
    is_foreground: bool = False
    """Whether a deletion takes its pods with it before the object itself is gone."""
    shows_object: bool = True
    """Whether the status describes the member object as it is."""


def describe(decision: Decision | None) -> str | None:
    """Return what is next by a decision as one line for users, None if there is nothing to tell."""
    if decision is None or (decision.operation is None and decision.question is None):
        return None
    if decision.question is not None:
        return f"it is asked {decision.question}"
    return {
        Operation.CREATE: "the object is created",
        Operation.UPDATE: "the object is updated",
        Operation.DELETE: "the object is deleted",
        Operation.RELEASE: "the object is released",
    }[decision.operation or Operation.UPDATE]
