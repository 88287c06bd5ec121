"""The common part of all guards: counting moves, recording held ones, and reading their approvals.

`scheduling/permits` asks about decisions, `controllers/override` about replicas that overrides lower,
`controllers/follower` about followers that leave their workloads, and `delivery` about deletions of data. The
arithmetic is in `planning/guard`: `moves.py` judges. `controllers/schedule` writes the PlacementHolds.
"""

from collections.abc import Callable, Iterable, Mapping

from federation.api import names
from federation.api.resources import PLACEMENT_HOLDS
from federation.apimachinery.resources import Object, group_kind_of
from federation.planning.guard.ledger import Cause, GuardOptions
from federation.planning.guard.moves import Judged, Moves
from federation.planning.guard.record import HeldMove, held_moves
from federation.runtime.controller import Key, key_of
from federation.runtime.host import Host

BY_HOLD = "guard/hold"
"""The index of federated objects by the PlacementHolds that they wait for."""
BY_RECORD = "guard/record"
"""The index of federated objects by the annotations that guards left on them."""
_RECORDS = (
    names.HELD_PLACEMENT,
    names.HELD_OVERRIDES,
    names.HELD_FOLLOWING,
    names.HELD_VOLUMES,
    names.PREVIOUS_PLACEMENT,
)


class MoveGuard:
    """Judges moves of federated objects. It lives as long as its controller.

    `annotation` is where a held move is recorded. Only moves of placements are recorded when they go on.
    """

    def __init__(self, host: Host, options: GuardOptions, *, annotation: str = names.HELD_PLACEMENT) -> None:
        self.options = options
        self._objects = host.objects
        self._annotation = annotation
        self._clock = host.clock
        self._holds = host.informers.for_resource(PLACEMENT_HOLDS)
        self.moves = Moves(options, annotation=annotation, approval=self._approval)
        host.objects.add_index(BY_HOLD, holds_of)
        host.objects.add_index(BY_RECORD, records_of)

    def on_approval(self, requeue: Callable[[Object], None]) -> None:
        """Call the function with each federated object of a hold that is approved."""

        def handle(old: Object | None, new: Object | None) -> None:  # noqa: ARG001  # a handler's signature
            if new is not None and new["spec"].get("approval"):
                for federated in self._objects.by_index(BY_HOLD, new["metadata"]["name"]):
                    requeue(federated)

        self._holds.add_handler(handle)

    async def recall(self, is_counted: Callable[[Object], bool] = lambda _: True) -> None:
        """Count what the objects recorded before a restart, once it is known what was approved since."""
        await self._holds.wait_synced()
        recorded = [self._annotation]
        if self._annotation == names.HELD_PLACEMENT:
            recorded.append(names.PREVIOUS_PLACEMENT)
        found = (federated for record in recorded for federated in self._objects.by_index(BY_RECORD, record))
        for federated in {key_of(each): each for each in found if is_counted(each)}.values():
            self.remember(federated)

    def sizes(self, federated: Object, causes: Iterable[Cause]) -> dict[Cause, int]:
        """Return by cause how many objects of this one's kind there are, in the cause's namespace or in all."""
        kind = group_kind_of(federated["spec"]["template"])
        return {cause: len(self._objects.keys_of_kind(kind, cause.namespace)) for cause in causes}

    def remember(self, federated: Object) -> None:
        """Count what the object recorded before the restart."""
        self.moves.remember(key_of(federated), federated, self._clock.now())

    def withdraw(self, key: Key) -> None:
        """Forget the move of an object that stays where it is, or is gone."""
        self.moves.withdraw(key)

    def moved(self, cause: Cause) -> int:
        """Return how many objects moved within the window."""
        return self.moves.moved(cause, self._clock.now())

    def judge(
        self,
        key: Key,
        held: HeldMove | None,
        sizes: Mapping[Cause, int],
        lost: frozenset[str],
        before: Mapping[str, int | None],
    ) -> Judged:
        """Return the permit for a move away from the clusters `lost`, as `Moves.judge` does now."""
        return self.moves.judge(key, held, sizes, lost, before, self._clock.now())

    def _approval(self, hold: str) -> Mapping[str, object]:
        stored = self._holds.get("", hold)
        return (stored or {}).get("spec", {}).get("approval") or {}


def holds_of(federated: Object) -> tuple[str, ...]:
    """Return the PlacementHolds that the object waits for, as the values of an index."""
    return tuple({held.hold for held in held_moves(federated)})


def records_of(federated: Object) -> tuple[str, ...]:
    """Return the annotations of guards that the object has, as the values of an index."""
    annotations = federated["metadata"].get("annotations") or {}
    return tuple(record for record in _RECORDS if record in annotations)
