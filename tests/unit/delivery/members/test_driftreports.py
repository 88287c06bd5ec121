"""Which corrections users are told of, in which words, and how often."""

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.delivery.members.driftreports import REPORTS_PER_MINUTE, DriftReports
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.rules.corrections import Correction
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.names import (
    EVENT_CORRECTION_PAUSED,
    EVENT_DRIFT_CORRECTED,
    EVENT_REPLICAS_HANDED_OVER,
    EVENT_REPLICAS_TAKEN_BACK,
)
from federation.planning.drift.fields import Author, Field
from federation.planning.drift.fights import CORRECTIONS_MAX

CORRECTION = Correction((Field("spec.replicas", ()),), Author("kubectl-edit", "Update", "2026-01-01T00:00:00Z"))


class Reports:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.reported: list[tuple[str, str, str]] = []
        self.kept = KeptState()
        self.reports = DriftReports(MemberRecords(self.clock), self, self.clock, self.kept)

    def event(self, obj: Object, type_: str, reason: str, message: str) -> None:
        self.reported.append((type_, reason, message))

    def correct(self, name: str = "web", cluster: str = "m1") -> None:
        self.reports.record({}, MemberKey(cluster, DEPLOYMENTS, "default", name), CORRECTION)


def test_the_first_of_many_corrections_is_reported_and_then_the_pause() -> None:
    each = Reports()
    for _ in range(CORRECTIONS_MAX):
        each.correct()
    ((type_, reason, message),) = each.reported
    assert (type_, reason) == ("Normal", EVENT_DRIFT_CORRECTED)
    assert message.startswith('cluster "m1": ')
    assert "spec.replicas" in message
    assert "kubectl-edit" in message
    assert message.endswith("; it was corrected")
    each.correct()
    each.correct()
    _, (type_, reason, message) = each.reported
    assert (type_, reason) == ("Warning", EVENT_CORRECTION_PAUSED)
    assert f"more than {CORRECTIONS_MAX} times within" in message
    assert "pause until 2026-01-01T" in message


async def test_a_cluster_has_so_many_reports_a_minute_and_each_has_its_own() -> None:
    each = Reports()
    for number in range(REPORTS_PER_MINUTE + 5):
        each.correct(f"web-{number}")
    assert len(each.reported) == REPORTS_PER_MINUTE
    each.correct(cluster="m2")
    assert len(each.reported) == REPORTS_PER_MINUTE + 1
    await each.clock.advance(59)
    each.correct("late")
    assert len(each.reported) == REPORTS_PER_MINUTE + 1
    await each.clock.advance(1)
    each.correct("later")
    assert len(each.reported) == REPORTS_PER_MINUTE + 2
    for number in range(REPORTS_PER_MINUTE):
        each.correct(f"more-{number}")
    assert len(each.reported) == 2 * REPORTS_PER_MINUTE + 1
    each.kept.forget_cluster("m1")
    each.correct("again")
    assert len(each.reported) == 2 * REPORTS_PER_MINUTE + 2


def test_an_owner_of_replicas_is_reported_when_it_comes_and_when_it_goes() -> None:
    each = Reports()
    each.reports.report_scaler({}, "m1", "", "hpa")
    each.reports.report_scaler({}, "m1", "hpa", "")
    owner = 'cluster "m1": HorizontalPodAutoscaler "hpa"'
    assert each.reported == [
        ("Normal", EVENT_REPLICAS_HANDED_OVER, f"{owner} owns the replicas from now on"),
        ("Normal", EVENT_REPLICAS_TAKEN_BACK, f"{owner} is gone; the replicas are the federation's again"),
    ]


def test_corrections_that_are_no_news_do_not_use_the_limit_up() -> None:
    each = Reports()
    for _ in range(2 * REPORTS_PER_MINUTE):
        each.correct()
    told = len(each.reported)
    assert told < 5
    each.correct("other")
    assert len(each.reported) == told + 1
