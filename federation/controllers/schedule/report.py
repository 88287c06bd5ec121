"""Tell users and operators what was decided: condition, event, journal.

On the happy path nothing is written to the object besides its placement: success shows in its status, and in one event
on its source. Whatever keeps an object from being scheduled is told in the condition Scheduled=False, in a warning
event on it and on its source, and in the journal; all of them only when it is new: the same decision again is counted
on its record. The journal also gets every successful decision, with the explanation that `fedctl why` prints.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from federation.api import conditions, names
from federation.api.federatedtype import FederatedType
from federation.api.resources import Object, Resource
from federation.base.clock import Clock
from federation.client.protocol import Client, PatchType
from federation.runtime.events import WARNING, Recorder
from federation.store.journal import DecisionFilter, DecisionRecord, Identity, Journal

_TIMES = ("lastUpdateTime",)


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that is reported about."""

    resource: Resource
    federated_type: FederatedType
    fed_object: Object


class Reporter:
    """Writes conditions, events and journal records of the schedule controller."""

    def __init__(self, client: Client, recorder: Recorder, journal: Journal, clock: Clock) -> None:
        self._client = client
        self._recorder = recorder
        self._journal = journal
        self._clock = clock

    def event(self, subject: Subject, type_: str, reason: str, message: str) -> None:
        """Report to whoever looks at the object, or at its source."""
        self._recorder.event(subject.fed_object, type_, reason, message)

    async def failed(self, subject: Subject, fed_object: Object, reason: str, message: str, *, has_place: bool) -> None:
        """Tell that the object could not be scheduled, and keeps the place that it has, if any."""
        told = f"{message}; the last placement stays" if has_place else message
        self.event(subject, WARNING, names.EVENT_SCHEDULING_FAILED, told)
        await self._set_condition(subject, fed_object, "False", reason, message)

    async def recovered(self, subject: Subject, fed_object: Object) -> None:
        """Take back an earlier Scheduled=False; writes nothing when there is none."""
        condition = conditions.find((fed_object.get("status") or {}).get("conditions"), names.SCHEDULED)
        if condition is not None and condition.get("status") != "True":
            await self._set_condition(subject, fed_object, "True", names.REASON_SCHEDULED, "")

    async def journal(
        self, subject: Subject, outcome: str, explanation: Mapping[str, Any], started_s: float
    ) -> datetime:
        """Put a decision into the journal, or why none was possible; return the record's time: `repeated` takes it."""
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
        """Tell the journal that nothing came of another decision: counted on the newest record if that says the same.

        Otherwise what is tried every few seconds would displace the records of what was decided.
        """
        group, kind, namespace, name = _identity(subject)
        wanted = DecisionFilter(group=group, kind=kind, namespace=namespace, name=name)
        newest = next(iter(await self._journal.query(wanted)), None)
        if newest is None or newest.outcome != outcome or _gist(orjson.loads(newest.explanation)) != _gist(explanation):
            await self.journal(subject, outcome, explanation, started_s)
        else:
            await self.repeated(subject, newest.at)

    async def repeated(self, subject: Subject, first_at: datetime) -> None:
        """Tell the journal that the decision of `first_at` was made again."""
        await self._journal.repeat(_identity(subject), first_at, self._clock.now())

    async def _set_condition(
        self, subject: Subject, fed_object: Object, status: str, reason: str, message: str
    ) -> None:
        existing = (fed_object.get("status") or {}).get("conditions")
        changed = conditions.set_condition(
            existing,
            type_=names.SCHEDULED,
            status=status,
            reason=reason,
            message=message,
            now=self._clock.now(),
            time_fields=_TIMES,
        )
        if existing is not None and changed is existing:
            return
        metadata = fed_object["metadata"]
        await self._client.patch(
            subject.resource,
            metadata["name"],
            {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": {"conditions": changed}},
            patch_type=PatchType.MERGE,
            namespace=metadata.get("namespace", ""),
            subresource="status",
        )


def _gist(explanation: Mapping[str, Any]) -> bytes:
    """Return what of a decision is news: where replicas are, how many are not, and whoever failed; no scores."""
    told = [explanation.get(key) for key in ("reason", "placements", "unplaced", "ignored", "failed")]
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS)


def _identity(subject: Subject) -> Identity:
    resource, template = subject.federated_type.resource, subject.fed_object["spec"]["template"]
    namespace = str(subject.fed_object["metadata"].get("namespace") or "")
    return resource.group, resource.kind, namespace, str((template.get("metadata") or {}).get("name") or "")
