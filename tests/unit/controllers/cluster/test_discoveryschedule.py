"""When a member's API is discovered, and our rights are checked: periodically, and at once when something has changed."""

from typing import Any, cast

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import DEPLOYMENTS, Resource
from federation.client.client import Client
from federation.controllers.cluster.discoveryschedule import DiscoverySchedule
from federation.controllers.cluster.rightscheck import RightsCheck

WIDGETS = Resource("example.org", "v1", "Widget", "widgets")
SERVED = [{"group": "apps", "version": "v1", "kind": "Deployment"}]
WITH_WIDGETS = [*SERVED, {"group": "example.org", "version": "v1", "kind": "Widget"}]


async def discovered(clock: ManualClock) -> DiscoverySchedule:
    schedule = DiscoverySchedule(clock, period_s=60.0, retry_s=10.0, definition_timeout_s=30.0)
    assert schedule.is_due
    schedule.begin()
    schedule.record(SERVED, is_partial=False)
    return schedule


async def test_a_kind_that_answers_before_discovery_shows_it_is_looked_for_and_given_up() -> None:
    clock = ManualClock()
    schedule = await discovered(clock)
    assert not schedule.saw_kind(DEPLOYMENTS)
    assert not schedule.is_due
    assert schedule.saw_kind(WIDGETS)
    assert not schedule.saw_kind(WIDGETS), "it is looked for already"
    schedule.begin()
    schedule.record(SERVED, is_partial=False)
    assert schedule.is_due
    assert schedule.is_awaiting
    await clock.advance(31)
    schedule.begin()
    schedule.record(SERVED, is_partial=False)
    assert not schedule.is_due
    assert not schedule.saw_kind(WIDGETS), "a member that answers again and again is not asked again and again"
    assert not schedule.is_awaiting
    await clock.advance(61)
    schedule.begin()
    schedule.record(WITH_WIDGETS, is_partial=False)
    assert not schedule.is_due
    schedule.begin()
    schedule.record(SERVED, is_partial=False)
    assert schedule.saw_kind(WIDGETS), "the kind was there, went and came back"


async def test_a_member_without_discovery_is_not_awaited_without_end() -> None:
    clock = ManualClock()
    schedule = await discovered(clock)
    assert schedule.saw_kind(WIDGETS)
    schedule.begin()
    schedule.record_failure()
    assert schedule.is_awaiting
    await clock.advance(31)
    schedule.begin()
    schedule.record_failure()
    assert not schedule.is_awaiting


async def test_what_changes_during_a_discovery_makes_another_one_due() -> None:
    schedule = await discovered(ManualClock())
    schedule.begin()
    schedule.expire()
    schedule.record(WITH_WIDGETS, is_partial=False)
    assert schedule.is_due


async def test_pauses_after_failures_double_up_to_the_period() -> None:
    clock = ManualClock()
    schedule = await discovered(clock)
    for pause_s in (10, 20, 40, 60, 60):
        schedule.begin()
        schedule.record_failure()
        await clock.advance(pause_s - 0.5)
        assert not schedule.is_due
        await clock.advance(0.5)
        assert schedule.is_due


class Expiring:
    """A member that answers a rules review just after the credentials of the request were replaced."""

    def __init__(self) -> None:
        self.check: RightsCheck | None = None
        self.reviews = 0

    async def raw(self, *_: Any, **__: Any) -> tuple[int, bytes]:
        self.reviews += 1
        if self.check is not None and self.reviews == 1:
            self.check.expire()
        return 401, b""


async def test_rights_are_checked_again_when_credentials_change_during_a_check() -> None:
    member, clock = Expiring(), ManualClock()
    check = RightsCheck("m1", list, cast("Any", None), cast("Any", None), clock, period_s=60.0, version="1")
    member.check = check
    for _ in range(3):
        assert await check.condition(cast("Client", member)) is None
    assert member.reviews == 2
    assert not check.is_due


async def test_a_kind_that_is_federated_later_makes_one_discovery_due_unless_it_is_known() -> None:
    schedule = await discovered(ManualClock())
    assert not schedule.wants(DEPLOYMENTS)
    assert schedule.wants(WIDGETS)
    assert schedule.is_due
    schedule.begin()
    schedule.record(SERVED, is_partial=False)
    assert not schedule.is_due
