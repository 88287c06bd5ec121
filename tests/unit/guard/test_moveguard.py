"""The guard's memory: which record of a held move stays, and which approval counts for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.support.wiredhost import wire_host
from tests.unit.apiserver.conftest import eventually

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_OBJECTS, PLACEMENT_HOLDS
from federation.apimachinery.clock import ManualClock, to_rfc3339
from federation.apimachinery.resources import Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.assembly import HOST_REGISTRY
from federation.client.local import LocalClient
from federation.guard.moveguard import MoveGuard
from federation.planning.guard.ledger import Cause, GuardOptions, Permit
from federation.planning.guard.moves import Judged
from federation.planning.guard.record import HeldMove, PastMove, held_text, past_text
from federation.runtime.controller import Key

POLICY, OTHER = Cause("PropagationPolicy", "default", "p"), Cause("PropagationPolicy", "default", "q")
EAST, WEST, BOTH = frozenset({"east"}), frozenset({"west"}), frozenset({"east", "west"})
BEFORE = {"east": 1, "west": 1}


class Setting:
    def __init__(self, **options: Any) -> None:
        self.clock = ManualClock()
        self.registry = Registry(MemoryStore(clock=self.clock), clock=self.clock, options=HOST_REGISTRY)
        self.client = LocalClient(self.registry, user_agent="test")
        host = wire_host(self.client, self.clock)
        self.informers, self.objects = host.informers, host.objects
        limits = GuardOptions(count=2, share=0.1, window_s=60.0, quiet_s=0.0)
        self.guard = MoveGuard(host, replace(limits, **options))

    async def judge(
        self, number: int, held: HeldMove | None = None, lost: frozenset[str] = EAST, cause: Cause = POLICY
    ) -> Judged:
        """Judge the move of one of twenty objects."""
        return self.guard.judge(key(number), held, {cause: 20}, lost, BEFORE)

    async def hold(self, cause: Cause = POLICY, *, number: int = 3) -> HeldMove:
        """Propose as many moves as the guard does not allow; return the record of the last."""
        for each in range(number):
            judged = await self.judge(each, cause=cause)
        assert judged.permit is Permit.HOLD
        assert judged.held is not None
        return judged.held

    async def approve(self, hold: str, at: str) -> None:
        """Write an approved PlacementHold and wait until the guard sees it."""
        spec = {"cause": str(POLICY), "count": 3, "objects": [], "approval": {"at": at, "by": "me", "reason": "fine"}}
        head = {"apiVersion": PLACEMENT_HOLDS.api_version, "kind": PLACEMENT_HOLDS.kind}
        await self.client.create(PLACEMENT_HOLDS, {**head, "metadata": {"name": hold}, "spec": spec})
        held = HeldMove(hold, POLICY, EAST, "")

        async def is_known() -> bool:
            return not self.guard.moves.is_waiting(held)

        await eventually(is_known)

    def at(self, seconds: float = 0.0) -> str:
        """The time of the clock, or so many seconds later."""
        return to_rfc3339(self.clock.now() + timedelta(seconds=seconds))


def key(number: int) -> Key:
    return Key("default", f"web-{number}")


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Setting]:
    setting = Setting(**options)
    tasks = [asyncio.create_task(setting.registry.run())]
    await setting.registry.install_crds(crd_manifests())
    tasks.append(asyncio.create_task(setting.informers.run()))
    await setting.informers.wait_synced()
    yield setting
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_move_beyond_the_limit_is_held_and_names_the_command_that_approves_it() -> None:
    async with running() as setting:
        held = await setting.hold()
        assert (held.cause, held.clusters, held.since) == (POLICY, EAST, setting.at())
        judged = await setting.judge(3, lost=BOTH)
        assert judged.held is not None
        assert (judged.held.hold, judged.held.clusters) == (held.hold, BOTH), "one hold takes all moves of a cause"
        assert judged.approval_command == f"fedctl approve {held.hold} --reason TEXT"
        assert judged.annotations == {names.HELD_PLACEMENT: held_text(judged.held)}


@pytest.mark.parametrize(
    ("recorded", "lost", "is_kept"),
    [(EAST, EAST, True), (BOTH, EAST, True), (EAST, WEST, False), (EAST, BOTH, False)],
    ids=["the same", "fewer clusters", "another cluster", "more clusters"],
)
async def test_a_record_stays_while_its_clusters_or_fewer_are_lost(
    recorded: frozenset[str], lost: frozenset[str], is_kept: bool
) -> None:
    """Else a move that takes more away than what people read would be approved unseen."""
    async with running() as setting:
        held = replace(await setting.hold(), clusters=recorded)
        await setting.clock.advance(5)
        judged = await setting.judge(2, held, lost)
        assert judged.held == (held if is_kept else HeldMove(held.hold, POLICY, lost, setting.at()))


async def test_a_record_is_renewed_for_another_cause_and_after_its_approval() -> None:
    async with running() as setting:
        held = await setting.hold()
        await setting.hold(OTHER)
        await setting.clock.advance(5)
        judged = await setting.judge(2, held, cause=OTHER)
        assert judged.held is not None
        assert (judged.held.cause, judged.held.since) == (OTHER, setting.at())
        assert judged.held.hold != held.hold
        await setting.approve(held.hold, setting.at(-1))
        await setting.hold(number=5)
        judged = await setting.judge(9, replace(held, since=setting.at()))
        assert judged.held is not None
        assert judged.held.hold != held.hold, "an approved hold takes no further moves"


@pytest.mark.parametrize(
    ("since_s", "lost", "is_approved"),
    [
        (-1, EAST, True),
        (0, EAST, False),
        (1, EAST, False),
        (-1, BOTH, False),
        (-1, WEST, False),
        (-1, frozenset(), True),
    ],
    ids=["held before", "held in the same second", "held after", "more clusters", "another cluster", "nothing"],
)
async def test_an_approval_counts_for_exactly_what_was_held_before_it(
    since_s: float, lost: frozenset[str], is_approved: bool
) -> None:
    async with running() as setting:
        await setting.approve("h", setting.at())
        held = HeldMove("h", POLICY, EAST, setting.at(since_s))
        assert setting.guard.moves.is_approved(held, lost) is is_approved
        assert not setting.guard.moves.is_approved(replace(held, hold="other"), lost)


async def test_an_approved_move_goes_on_and_counts_no_more() -> None:
    async with running() as setting:
        held = await setting.hold()
        await setting.approve(held.hold, setting.at(1))
        judged = await setting.judge(2, held)
        assert judged.permit is Permit.GO
        past = PastMove(setting.at(), (POLICY,), BEFORE, held.hold)
        assert judged.annotations == {names.HELD_PLACEMENT: None, names.PREVIOUS_PLACEMENT: past_text(past)}
        assert setting.guard.moved(POLICY) == 2, "the two before it"


async def test_a_single_move_that_needs_approval_is_held_until_it_is_approved() -> None:
    async with running() as setting:
        judged = setting.guard.moves.judge(
            key(0), None, {POLICY: 20}, EAST, BEFORE, setting.clock.now(), needs_approval=True
        )
        assert judged.permit is Permit.HOLD
        assert judged.held is not None
        await setting.approve(judged.held.hold, setting.at(1))
        judged = setting.guard.moves.judge(
            key(0), judged.held, {POLICY: 20}, EAST, BEFORE, setting.clock.now(), needs_approval=True
        )
        assert judged.permit is Permit.GO


async def test_a_move_within_the_limit_is_recorded_without_a_hold() -> None:
    async with running() as setting:
        judged = await setting.judge(0)
        assert judged.permit is Permit.GO
        past = PastMove(setting.at(), (POLICY,), BEFORE)
        assert judged.annotations == {names.HELD_PLACEMENT: None, names.PREVIOUS_PLACEMENT: past_text(past)}
        assert setting.guard.moved(POLICY) == 1
        await setting.clock.advance(61)
        assert setting.guard.moved(POLICY) == 0


def a_federated(number: int, **annotations: str) -> Object:
    metadata = {"name": f"web-{number}", "namespace": "default", "annotations": annotations}
    return {"apiVersion": FEDERATED_OBJECTS.api_version, "kind": FEDERATED_OBJECTS.kind, "metadata": metadata}


async def test_after_a_restart_held_moves_and_unapproved_ones_count_again() -> None:
    async with running() as setting:
        held = HeldMove("h", POLICY, EAST, setting.at())
        past = PastMove(setting.at(-30), (POLICY,), BEFORE)
        setting.guard.remember(a_federated(0, **{names.HELD_PLACEMENT: held_text(held)}))
        setting.guard.remember(a_federated(1, **{names.PREVIOUS_PLACEMENT: past_text(past)}))
        approved = past_text(replace(past, hold="h"))
        setting.guard.remember(a_federated(2, **{names.PREVIOUS_PLACEMENT: approved}))
        edited = past_text(replace(past, at="yesterday"))
        setting.guard.remember(a_federated(3, **{names.PREVIOUS_PLACEMENT: edited}))
        assert setting.guard.moved(POLICY) == 1
        assert (await setting.judge(4)).held == HeldMove("h", POLICY, EAST, setting.at()), "the open hold goes on"


async def test_an_approved_hold_does_not_count_after_a_restart() -> None:
    async with running() as setting:
        await setting.approve("h", setting.at(1))
        held = HeldMove("h", POLICY, EAST, setting.at())
        for number in range(5):
            setting.guard.remember(a_federated(number, **{names.HELD_PLACEMENT: held_text(held)}))
        assert (await setting.judge(9)).permit is Permit.GO
