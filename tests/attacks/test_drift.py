"""What a hostile member can do with drift: forge owners, hide behind our hash, provoke writes and events."""

import pytest
from tests.scenarios import test_replica_handover as handover
from tests.scenarios.test_drift_reports import counted, edit, in_cluster, messages_of, running
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client, PatchType, Request
from federation.client.local import LocalTransport
from federation.delivery.members.driftreports import REPORTS_PER_MINUTE, DriftReports
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberrecords import HISTORY_MAX, MemberRecords
from federation.delivery.members.scalers import find_scaler
from federation.delivery.rules.corrections import Correction, is_correction
from federation.delivery.rules.memberrecord import NOTHING_KNOWN, MemberKey
from federation.delivery.rules.names import EVENT_DRIFT_CORRECTED, EVENT_REPLICAS_HANDED_OVER, EVENT_REPLICAS_TAKEN_BACK
from federation.planning.drift.fields import Author, Field

REPLICAS = Field("spec.replicas", ("spec", "replicas"))


async def test_a_writer_that_changes_our_hash_too_is_paused_all_the_same() -> None:
    """With another hash on the object its correction looks like the delivery of a new template."""
    async with a_world() as world:
        await running(world)
        before = counted("corrections", "east")
        for number in range(7):
            await edit(world, 9 + number, **{names.TEMPLATE_HASH: f"forged-{number}"})
        assert (await in_cluster(world, "east"))["status"] == "CorrectionPaused"
        assert counted("corrections", "east") == before + 6
        await world.until_replicas("web", {"east": 2, "west": 2})


async def test_a_manager_with_an_odd_name_is_told_in_printable_characters() -> None:
    async with a_world() as world:
        await running(world)
        await world.members["east"].admin.patch(
            DEPLOYMENTS,
            "web",
            {"spec": {"replicas": 9}},
            patch_type=PatchType.MERGE,
            namespace="default",
            field_manager='x" [red]' + "y" * 100,
        )
        await world.until_replicas("web", {"east": 2, "west": 2})
        (message,) = await messages_of(world, EVENT_DRIFT_CORRECTED)
        assert '"x? [red]yyy' in message
        assert len(message) < 300


async def test_a_member_that_changes_everything_gets_a_limited_number_of_events() -> None:
    count = REPORTS_PER_MINUTE + 20
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        for number in range(count):
            await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=1))
        await world.settle()
        for number in range(count):
            await world.members["east"].merge(DEPLOYMENTS, f"web-{number}", {"spec": {"replicas": 0}})
        await world.settle()
        for number in range(count):
            assert await world.replicas(f"web-{number}") == {"east": 1}
        assert 0 < len(await messages_of(world, EVENT_DRIFT_CORRECTED)) <= REPORTS_PER_MINUTE


class Events:
    """Counts the events about drift."""

    def __init__(self) -> None:
        self.count = 0

    def event(self, obj: Object, type_: str, reason: str, message: str) -> None:
        """Count an event."""
        self.count += reason == EVENT_DRIFT_CORRECTED and "" not in (obj, type_, message)


def test_one_member_cannot_displace_what_is_known_of_others() -> None:
    clock, events = ManualClock(), Events()
    records = MemberRecords(clock)
    reports = DriftReports(records, events, clock, KeptState())
    correction = Correction((REPLICAS,), Author("editor", "Update", ""))
    west = MemberKey("west", DEPLOYMENTS, "default", "web")
    reports.record({}, west, correction)
    records.record_content(west, "digest")
    events.count = 0
    for number in range(HISTORY_MAX + 10):
        key = MemberKey("east", DEPLOYMENTS, "default", f"web-{number}")
        reports.record({}, key, correction)
        records.record_content(key, "digest")
    assert events.count == REPORTS_PER_MINUTE
    assert records.drift(west) is not None
    assert is_correction(records.get(west), "digest", {"metadata": {}})
    first = MemberKey("east", DEPLOYMENTS, "default", "web-0")
    assert records.get(first) == NOTHING_KNOWN


async def test_somebody_who_scales_all_the_time_causes_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_world() as world:
        await handover.running(world)
        asked = handover.listing_autoscalers(monkeypatch, world.members["east"])
        before = counted("corrections", "east")
        for number in range(40):
            await handover.scale_in_member(world, 9 + number % 2)
            await world.pass_time(0.5)
        assert counted("corrections", "east") == before + 6
        assert len(asked) <= 7
        await world.pass_time(60)
        await world.until_replicas("web", {"east": 3, "west": 3})


async def test_an_autoscaler_that_comes_and_goes_changes_the_owner_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_world() as world:
        await handover.running(world)
        asked = handover.listing_autoscalers(monkeypatch, world.members["east"])
        east = world.members["east"].admin
        for _ in range(20):
            await east.create(HORIZONTAL_POD_AUTOSCALERS, handover.scaler_for())
            await handover.scale_in_member(world, 7)
            await world.pass_time(5)
            await east.delete(HORIZONTAL_POD_AUTOSCALERS, "web", "default")
            await handover.scale_in_member(world, 8)
            await world.pass_time(5)
        changes = [
            *await messages_of(world, EVENT_REPLICAS_HANDED_OVER),
            *await messages_of(world, EVENT_REPLICAS_TAKEN_BACK),
        ]
        assert len(changes) <= 5
        assert len(asked) <= 10
        await world.pass_time(360)
        await world.until_replicas("web", {"east": 3, "west": 3})


async def test_autoscalers_without_end_are_not_read_to_the_end() -> None:
    """Pages with tokens that lead on for ever."""

    class Endless(LocalTransport):
        pages = 0

        async def request(self, request: Request) -> Object:
            self.pages += 1
            return {"metadata": {"continue": "more"}, "items": [{"metadata": {}}, "odd"]}

    transport = Endless(Registry(MemoryStore(clock=ManualClock()), clock=ManualClock()))
    key = MemberKey("east", DEPLOYMENTS, "default", "web")
    assert await find_scaler(Client(transport), key) == ""
    assert transport.pages == 10
