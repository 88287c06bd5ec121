"""The facts of a decision for the rule about volumes (`planning/guard/volumepermit.py`). Pure.

The schedule controller and plans give the same facts, so that a plan foresees what is held.
"""

from collections.abc import Set as AbstractSet

from federation.api import names
from federation.planning.failover.tolerance import AccessModes, FailoverMode, fixed_volumes_of
from federation.planning.guard.volumepermit import FREE, Departure, VolumePermit, permit_volumes
from federation.scheduling.answers import Due
from federation.scheduling.attempt import SchedulingAttempt
from federation.scheduling.engine import Decision
from federation.scheduling.framework.moving import AVOIDED


def permit_of_decision(
    attempt: SchedulingAttempt,
    due: Due,
    decision: Decision,
    access_modes: AccessModes,
    *,
    evicting: AbstractSet[str],
    drained: AbstractSet[str] = frozenset(),
    held: AbstractSet[str] = frozenset(),
    approved: AbstractSet[str] = frozenset(),
) -> VolumePermit:
    """Return the answer about a successful decision; `evicting` are the clusters with taints of failover.

    `drained` are those of them that are drained and answer.
    """
    before, earlier = attempt.origin(), attempt.volumes
    if not before or before == decision.placements:
        return FREE
    volumes = fixed_volumes_of(attempt.federated["spec"]["template"], access_modes)
    if not volumes:
        return FREE
    clusters, outside = decision.snapshot.by_name, decision.snapshot.left.keys()
    return permit_volumes(
        Departure(
            volumes=volumes,
            before=before,
            after=decision.placements,
            wanted=due.unit.desired_replicas,
            changed=frozenset(due.comparison.changed),
            outside=outside,
            departed={name for name in before if name not in clusters or clusters[name].is_terminating},
            evicting=evicting,
            copied=drained
            if names.MOVE_VOLUMES in (attempt.federated["metadata"].get("annotations") or {})
            else frozenset(),
            unhealthy=AVOIDED.of(due.unit).keys() - outside,
            fails_over=due.policy.failover.mode is FailoverMode.AUTO,
            homes=due.quiet.homes,
            held=held,
            approved=approved,
            is_start=not attempt.current(),
            clashing=earlier.clashing,
        )
    )
