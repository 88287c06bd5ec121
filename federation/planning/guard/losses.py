"""Losses of clusters by a scheduling decision, and the placement of an object whose decision is held. Pure.

Placements are cluster → replicas; None stands for the replicas of the template (Duplicate mode).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum

_OWN = frozenset(
    (
        "autoMigrationInfo",
        "controlAnnotationsHash",
        "ignoredPlugins",
        "pluginFieldsHash",
        "replicaCount",
        "resourceRequest",
        "schedulingAnnotationsHash",
    )
)
"""Scheduling triggers that belong to one object: its user changed it, its pods do not run where they are, or its last
decision was provisional."""
_OF_POLICY = frozenset(("policyContentHash", "policyName"))
_OF_PROFILE = frozenset(("profileHash",))


class Blame(StrEnum):
    """The kinds of causes that a move counts for."""

    PROJECT = "project"
    POLICY = "policy"
    PROFILE = "profile"
    TYPE = "type"
    CLUSTERS = "clusters"


def blame(changed: AbstractSet[str], before: Mapping[str, int | None]) -> frozenset[Blame]:
    """Return what can be the cause of a move, from the scheduling triggers that changed; nothing for the object itself.

    Copies that are divided although only the number of replicas changed got a new pathDefinition from their type.
    """
    if changed and changed <= _OWN:
        is_divided = changed == {"replicaCount"} and None in before.values()
        return frozenset({Blame.TYPE}) if is_divided else frozenset()
    if not changed:
        return frozenset({Blame.TYPE, Blame.CLUSTERS})  # nothing explains it: it may be a defect of ours
    found = set()
    if changed & _OF_POLICY:
        found.add(Blame.POLICY)
    if changed & _OF_PROFILE:
        found.add(Blame.PROFILE)
    if changed - _OWN - _OF_POLICY - _OF_PROFILE:
        found.add(Blame.CLUSTERS)
    return frozenset(found)


def lost_clusters(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> frozenset[str]:
    """Return the clusters that lose the object or some of its replicas.

    From the template's replicas to a number counts as a loss: the number is a share of them.
    """
    return frozenset(name for name, count in before.items() if _is_loss(count, after.get(name, 0)))


def _is_loss(old: int | None, new: int | None) -> bool:
    if old is None:
        return new is not None
    return new is not None and new < old


def held_placement(
    before: Mapping[str, int | None], after: Mapping[str, int | None], wanted: int | None
) -> dict[str, int | None]:
    """Return the placement while the decision `after` is held: nothing moves, and scaling goes on.

    `wanted` are the object's replicas. Replicas that it lacks are added where the decision adds some; those that it
    has too many are removed where the decision removes some. Further copies are added, but none that replaces another.
    """
    if None in before.values() or None in after.values():
        # Copies that are divided get no further clusters: the replicas there would take the place of others.
        further = [name for name in after if name not in before and after[name] is None]
        return {**before, **dict.fromkeys(further[: max(0, len(after) - len(before))])}
    old = {name: count or 0 for name, count in before.items()}
    new = {name: count or 0 for name, count in after.items()}
    held = dict(old)
    missing = sum(new.values()) - sum(old.values())
    surplus = 0 if wanted is None else sum(old.values()) - wanted
    for name in sorted(old.keys() | new.keys()):
        difference = new.get(name, 0) - old.get(name, 0)
        if difference > 0 and missing > 0:
            added = min(difference, missing)
            held[name] = old.get(name, 0) + added
            missing -= added
        elif difference < 0 and surplus > 0:
            removed = min(-difference, surplus)
            held[name] = old[name] - removed
            surplus -= removed
    return {name: count for name, count in held.items() if count or name in new}
