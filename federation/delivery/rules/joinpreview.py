"""The fate of objects that a member has when it joins: each is taken over, left, or would be removed. Pure.

Only objects that concern the federation are looked at: those with our label, those of a name that the host federates,
and those that a Leftover is about. Policies decide about placements after the join; an object that is not placed in the
cluster yet is taken over only if a policy places it there. `fedctl join` prints the answer before it acts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from federation.apimachinery.resources import STATEFUL_SETS
from federation.delivery.rules.adoption import AdoptionError, is_adoption_allowed, takes_only_equal
from federation.delivery.rules.orphans import is_orphan
from federation.delivery.rules.plan import is_managed, is_management_disabled
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.leftovers.record import Record, Step, next_step


class Fate(StrEnum):
    """The fate of an object of the member."""

    TAKES_OVER = "takes over"
    LEAVES = "leaves"
    REMOVES = "would remove"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The fate of one object, and why."""

    fate: Fate
    why: str


def foresee(
    live: Mapping[str, Any], federated: Mapping[str, Any] | None, record: Record | None, cluster: str
) -> Foreseen | None:
    """Return what a join of the cluster does with an object, None for one that does not concern the federation.

    `federated` is the federated object of its kind and name, `record` the Leftover about it.
    """
    if record is not None and record.uid not in ("", live["metadata"].get("uid")):
        record = None  # it is about an earlier object of the name
    if record is not None and record.is_pending:
        match next_step(record, live):
            case Step.DELETE if not record.at:  # an answer; one with a time was given in an earlier membership
                return Foreseen(Fate.REMOVES, f"a record asks for it ({record.reason})")
            case Step.RELEASE:
                return Foreseen(Fate.LEAVES, "it loses the label of the federation")
            case _:
                pass
    if federated is None or federated["metadata"].get("deletionTimestamp"):
        if record is None and not is_managed(live):
            return None
        return Foreseen(Fate.LEAVES, "a user kept it" if record is not None else "the host does not know it")
    return _foresee_named(live, federated, record, cluster)


def _foresee_named(
    live: Mapping[str, Any], federated: Mapping[str, Any], record: Record | None, cluster: str
) -> Foreseen:
    if is_management_disabled(live):
        return Foreseen(Fate.LEAVES, "its managed label is false")
    annotations = federated["metadata"].get("annotations") or {}
    is_placed = cluster in effective_placement(federated)
    if not is_placed and record is not None:
        return Foreseen(Fate.LEAVES, "a user kept it, and it is not placed there")
    try:
        may_adopt = is_adoption_allowed(annotations, cluster)
    except AdoptionError as error:
        return Foreseen(Fate.LEAVES, str(error))
    if not (is_managed(live) or may_adopt or _is_orphan(live, federated)):
        where = "placed there, " if is_placed else ""
        return Foreseen(Fate.LEAVES, f"{where}it is taken over only on demand")
    conditions = [] if is_placed else ["a policy places it there"]
    if not is_managed(live) and takes_only_equal(annotations):
        conditions.append("it is equal")
    return Foreseen(Fate.TAKES_OVER, f"if {' and '.join(conditions)}" if conditions else "placed there")


def _is_orphan(live: Mapping[str, Any], federated: Mapping[str, Any]) -> bool:
    template = federated["spec"]["template"]
    is_set = (template.get("apiVersion"), template.get("kind")) == (STATEFUL_SETS.api_version, STATEFUL_SETS.kind)
    return is_set and is_orphan(STATEFUL_SETS, live)
