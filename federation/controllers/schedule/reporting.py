"""Report decisions: the condition Scheduled, events, and the journal.

A success writes nothing to the object besides its placement, and one event to its source. A failure sets the condition
Scheduled=False, emits a warning event on the object and its source, and is recorded in the journal, each only if it is
new; the journal counts repetitions. The journal also has every successful decision, with the explanation that
`fedctl why` prints.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.controllers.schedule.names import (
    EVENT_EVICTION_WAITS,
    EVENT_INVALID_SCHEDULING_ANNOTATION,
    EVENT_MOVE_UNDONE,
    EVENT_PARSE_MIGRATION_CONFIGURATION,
    EVENT_SCHEDULED,
    EVENT_SCHEDULING_ANNOTATION_IGNORED,
    EVENT_SCHEDULING_FAILED,
)
from federation.journal.decisions import DecisionFilter, DecisionRecord, Identity, Journal
from federation.planning.failover.evictionrecord import eviction_record
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.status.schedulingsummary import describe_move
from federation.runtime.controller import Key
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.scheduling.answers import Wait
from federation.scheduling.engine import Decision, Outcome, Placements
from federation.scheduling.policyspec import PolicyRef

WRITER = "schedule"
"""Names this controller's writes, so that their watch events do not requeue the object."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The federated object of a report, as it was before the reconcile."""

    key: Key
    federated_type: FederatedType
    federated: Object


class Reporter:
    """Writes conditions, events and journal records of the schedule controller."""

    def __init__(self, host: Host, journal: Journal) -> None:
        self._objects = host.objects
        self._recorder = host.recorder
        self._journal = journal
        self._clock = host.clock

    def now(self) -> datetime:
        """Return the time of a report."""
        return self._clock.now()

    # -- events

    def invalid_migration(self, subject: Subject, problem: str) -> None:
        """Emit an event for an invalid migration request of the user; "" for none."""
        if problem:
            message = f"annotation {names.MIGRATION_CONFIGURATION} is not followed: {problem}"
            self._event(subject, WARNING, EVENT_PARSE_MIGRATION_CONFIGURATION, message)

    def ignored_annotations(self, subject: Subject, ignored: Mapping[str, str], *, is_allowed: bool) -> None:
        """Emit an event per annotation without effect; `is_allowed`: the namespace allows such annotations."""
        reason = EVENT_INVALID_SCHEDULING_ANNOTATION if is_allowed else EVENT_SCHEDULING_ANNOTATION_IGNORED
        for annotation, why in ignored.items():
            self._event(subject, WARNING, reason, f"annotation {annotation} is ignored: {why}")

    def placed(
        self, subject: Subject, federated: Object, decision: Decision, ref: PolicyRef | None, *, is_moved: bool
    ) -> None:
        """Emit an event for a decision that changes the placement, or the summary of unplaced replicas."""
        if not is_moved and not (decision.shortage and _summary(federated) != _summary(subject.federated)):
            return
        before = current_clusters(subject.federated, subject.federated_type)
        move = describe_move(before, decision.placements) or "it stays as it was"
        message = "; ".join(filter(None, (f"{move} ({ref})", decision.shortage)))
        self._event(subject, WARNING if decision.shortage else NORMAL, EVENT_SCHEDULED, message)

    def undone(self, subject: Subject, placements: Placements) -> None:
        """Emit an event for a move that was undone."""
        before = current_clusters(subject.federated, subject.federated_type)
        self._event(subject, NORMAL, EVENT_MOVE_UNDONE, describe_move(before, placements))

    def stays(self, subject: Subject, annotations: Mapping[str, str | None]) -> None:
        """Emit an event for replicas that stay in a lost or drained cluster for a new reason of their own."""
        before = eviction_record(subject.federated).stays
        after = eviction_record({"metadata": {"annotations": annotations}}).stays
        for name, stay in after.items():
            if name not in before or before[name].reason is not stay.reason:
                text = f"replicas stay in cluster {name}: {stay.message}"
                self._event(subject, WARNING, EVENT_EVICTION_WAITS, text)

    def warn(self, subject: Subject, warnings: Mapping[str, str]) -> None:
        """Emit an event for each message of a permit, by reason."""
        for reason, message in warnings.items():
            self._event(subject, WARNING, reason, message)

    def _event(self, subject: Subject, type_: str, reason: str, message: str) -> None:
        self._recorder.event(subject.federated, type_, reason, message)

    # -- the condition Scheduled

    async def failed(self, subject: Subject, failure: Wait, *, has_placement: bool) -> None:
        """Set Scheduled=False and emit an event; `has_placement`: the object keeps its last placement."""
        message = f"{failure.message}; the last placement stays" if has_placement else failure.message
        if failure.reason in (names.REASON_QUEUED, names.REASON_POD_GROUP):
            self._event(subject, NORMAL, failure.reason, message)
        else:
            self._event(subject, WARNING, EVENT_SCHEDULING_FAILED, message)
        await self._set_condition(subject, "False", failure.reason, failure.message)

    async def recovered(self, subject: Subject, federated: Object) -> None:
        """Replace an earlier Scheduled=False by Scheduled=True; write nothing without one."""
        condition = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
        if condition is not None and condition.get("status") != "True":
            await self._set_condition(subject, "True", names.REASON_SCHEDULED, "")

    async def limited(self, subject: Subject, federated: Object, message: str) -> None:
        """Set Scheduled=False for an object that a quota keeps from getting all that it wants; once per reason."""
        condition = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
        reason = str(Outcome.QUOTA_EXCEEDED)
        if (condition.get("reason"), condition.get("message")) != (reason, message):
            await self._set_condition(subject, "False", reason, message)

    @staticmethod
    def is_limited(federated: Object) -> bool:
        """Return whether the condition says that a quota keeps the object from getting all of its replicas."""
        condition = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
        return bool(condition.get("reason") == Outcome.QUOTA_EXCEEDED)

    async def _set_condition(self, subject: Subject, status: str, reason: str, message: str) -> None:
        await self._objects.set_condition(
            subject.key, names.SCHEDULED, status=status, reason=reason, message=message, writer=WRITER
        )

    # -- the journal

    async def journal(
        self, subject: Subject, outcome: str, explanation: Mapping[str, Any], started_s: float
    ) -> datetime:
        """Record a decision, or the reason why none was possible; return the record's time, for `repeated`."""
        at = self._clock.now()
        record = DecisionRecord(
            at,
            *_identity(subject),
            outcome,
            duration_ms=(self._clock.monotonic() - started_s) * 1000,
            explanation=orjson.dumps(explanation),
        )
        await self._journal.append(record)
        return at

    async def tried_again(
        self, subject: Subject, outcome: str, explanation: Mapping[str, Any], started_s: float
    ) -> None:
        """Record a retry without effect; count it on the newest record if that has the same result.

        Otherwise retries every few seconds would displace the records of real decisions.
        """
        group, kind, namespace, name = _identity(subject)
        query = DecisionFilter(group=group, kind=kind, namespace=namespace, name=name)
        newest = next(iter(await self._journal.query(query)), None)
        if (
            newest is None
            or newest.outcome != outcome
            or _result(orjson.loads(newest.explanation)) != _result(explanation)
        ):
            await self.journal(subject, outcome, explanation, started_s)
        else:
            await self.repeated(subject, newest.at)

    async def repeated(self, subject: Subject, first_at: datetime) -> None:
        """Count a repetition of the decision that was recorded at `first_at`."""
        await self._journal.record_repeat(_identity(subject), first_at, self._clock.now())


def _result(explanation: Mapping[str, Any]) -> bytes:
    """Return the fields that make two decisions different for users: placements and failures, not scores."""
    fields = [explanation.get(key) for key in ("reason", "placements", "unplaced", "ignored", "failed")]
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)


def _summary(federated: Object) -> str | None:
    """Return the last reported summary of the object's placement."""
    summary: str | None = (federated["metadata"].get("annotations") or {}).get(names.SCHEDULING_SUMMARY)
    return summary


def _identity(subject: Subject) -> Identity:
    resource, template = subject.federated_type.resource, subject.federated["spec"]["template"]
    namespace = str(subject.federated["metadata"].get("namespace") or "")
    return resource.group, resource.kind, namespace, str((template.get("metadata") or {}).get("name") or "")
