"""The move of one federated object with its volumes: one look at one step per call, and one write.

The record says which step is under way, and the overrides follow from it, in the same write. What is done is written
before the next step begins, so a crash repeats a step and skips none. `stages.py` looks at members.
"""

from collections.abc import Sequence

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.errors import ApiError, ClusterError
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS, Object
from federation.featureapi.surroundings import GateTransport
from federation.features.volumemoves.names import (
    EVENT_OLD_VOLUMES_DELETED,
    EVENT_OLD_VOLUMES_KEPT,
    EVENT_VOLUME_MOVE_UNDONE,
    EVENT_VOLUMES_MOVE,
    EVENT_VOLUMES_MOVED,
    VOLUME_MOVE_CONTROLLER,
)
from federation.features.volumemoves.rules.choice import still_old, stopping_overrides
from federation.features.volumemoves.rules.moverecord import RECORD, OldVolumes, Phase, VolumeMove, Wish, read_wish
from federation.features.volumemoves.rules.transitions import advance, cleaned
from federation.features.volumemoves.site import Site
from federation.features.volumemoves.stages import FindCluster, Stage
from federation.guard.moveguard import MoveGuard
from federation.planning.federatedobject.placements import (
    Part,
    effective_placement,
    to_merge_patch,
    with_annotations,
    with_overrides,
)
from federation.planning.guard.ledger import Cause, Permit
from federation.planning.guard.record import held_move
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host

_POLL_S = 2.0
_PREPARE_S = 10.0
"""How often it is looked whether a move may begin. Until then the workload runs."""


class Reconciler:
    """Handles one federated object per call."""

    def __init__(self, host: Host, guard: MoveGuard, transport: GateTransport, find: FindCluster) -> None:
        self._objects = host.objects
        self._members = host.members
        self._recorder = host.recorder
        self._clock = host.clock
        self._guard = guard
        self._transport = transport
        self._find = find

    async def reconcile(self, key: Key) -> Result:
        """Look at the present step, and write what became of it."""
        federated = self._objects.get(key)
        type_ = self._objects.type_of(federated) if federated is not None else None
        move = RECORD.of(federated) if federated is not None else None
        if federated is None or type_ is None or move is None or federated["metadata"].get("deletionTimestamp"):
            return DONE
        wish = _wish_of(move)
        # The scheduler writes the record alone.
        if await self._write(key, federated, _overrides(federated, type_, move, wish)):
            return Result(0.0)
        if move.phase is Phase.FAILED and not move.is_unclean:
            return DONE
        if move.phase is Phase.KEPT:
            return await self._agree(key, federated, move)
        stage = Stage(self._members, self._find, self._transport, federated, type_, move, wish)
        outcome = await stage.look()
        if move.phase is Phase.FAILED:
            if not outcome.is_done and self._find(move.source) is not None:
                return Result(_PREPARE_S)
            await self._write(key, federated, with_annotations(federated, RECORD.entry(cleaned(move))))
            return DONE
        after = advance(move, outcome, self._clock.now(), timeout_s=wish.timeout_seconds)
        # The version that was read is patched: what the scheduler wrote meanwhile is a conflict, and the next look's.
        overrides = _overrides(federated, type_, after, wish)
        await self._write(key, federated, with_annotations(federated, RECORD.entry(after)), overrides)
        if after.phase is not move.phase:
            self._report(federated, after)
            return Result(0.0)
        return Result(_PREPARE_S if move.phase is Phase.PREPARE else _POLL_S)

    async def _write(self, key: Key, federated: Object, *parts: Part) -> bool:
        """Write the parts as one patch; return whether there was anything to write."""
        patch = to_merge_patch(federated, *parts)
        if patch is None:
            return False
        await self._objects.patch(key, federated, patch)
        return True

    def _report(self, federated: Object, move: VolumeMove) -> None:
        match move.phase:
            case Phase.UNDO:
                text = f"the move of its volumes to {move.target} is undone: {move.message}"
                self._recorder.event(federated, WARNING, EVENT_VOLUME_MOVE_UNDONE, text)
            case Phase.KEPT:
                text = f"it runs in {move.target} with copies of its volumes; the old ones stay in {move.source}"
                self._recorder.event(federated, NORMAL, EVENT_VOLUMES_MOVED, text)
            case Phase.QUIESCE:
                text = f"its volumes move from {move.source} to {move.target} by {move.way}"
                self._recorder.event(federated, NORMAL, EVENT_VOLUMES_MOVE, text)

    async def _agree(self, key: Key, federated: Object, move: VolumeMove) -> Result:
        """Hold the deletion of the old volumes until somebody approves it, and delete them then."""
        kept = still_old(move, effective_placement(federated))
        clusters = {each.cluster for each in kept}
        name = federated["spec"]["template"]["metadata"]["name"]
        cause = Cause("Deletion", key.namespace, f"old volumes of {name}")
        held = held_move(federated, names.HELD_VOLUMES)
        judged = self._guard.moves.judge(key, held, {cause: 1}, clusters, {}, self._clock.now(), needs_approval=True)
        if clusters and judged.permit is not Permit.GO:
            if held is None:
                text = f"its old volumes stay in [{','.join(sorted(clusters))}] until: {judged.approval_command}"
                self._recorder.event(federated, WARNING, EVENT_OLD_VOLUMES_KEPT, text)
            await self._write(key, federated, with_annotations(federated, judged.annotations))
            return DONE
        if not await self._are_deleted(key, kept):
            return Result(_POLL_S)
        self._guard.withdraw(key)
        if clusters:
            self._recorder.event(
                federated, NORMAL, EVENT_OLD_VOLUMES_DELETED, "its old volumes are deleted, as approved"
            )
        await self._write(key, federated, with_annotations(federated, {**RECORD.entry(None), names.HELD_VOLUMES: None}))
        return DONE

    async def _are_deleted(self, key: Key, kept: Sequence[OldVolumes]) -> bool:
        """Delete the claims; return whether none is left. What a cluster has that is no member is its users'."""
        gone = []
        try:
            for old in kept:
                if self._find(old.cluster) is not None:
                    site = Site(self._members.client(old.cluster), old.cluster, key.namespace, "")
                    for name, uid in old.claims.items():
                        gone.append(await site.remove(PERSISTENT_VOLUME_CLAIMS, name, uid=uid))
        except (ClusterError, ApiError):
            return False
        return all(gone)


def _overrides(federated: Object, type_: FederatedType, move: VolumeMove, wish: Wish) -> Part:
    template = federated["spec"]["template"]
    wanted = stopping_overrides(move, wish, type_.paths.replicas_spec, template)
    return with_overrides(federated, VOLUME_MOVE_CONTROLLER, wanted)


def _wish_of(move: VolumeMove) -> Wish:
    """Return what was asked for when the move began; a later change counts for the next one."""
    try:
        return read_wish(move.wish)
    except ValueError:
        return Wish()
