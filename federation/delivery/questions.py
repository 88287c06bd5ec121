"""Asks what a decision must know first: one mechanism for members and for the host's admission.

A question is asked at most once in a reconcile. While it is open nothing is written; the reconcile waits for a short
time, and decides again about each cluster whose answer came. A later answer requeues the object. Nobody waits for a
member that is slow. What a member answers goes to the record of the member object.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

from federation.apimachinery.errors import ApiError, ClusterError
from federation.client.client import Client
from federation.delivery.host.hostadmission import HostAdmission
from federation.delivery.members.depot import Depot
from federation.delivery.members.driftreports import DriftReports
from federation.delivery.members.ends import find_end
from federation.delivery.members.executor import Action
from federation.delivery.members.memberoperations import wait_for_any
from federation.delivery.members.operations import Outcome
from federation.delivery.members.propagation import BRIEF_S, Propagation
from federation.delivery.members.scalers import find_scaler
from federation.delivery.rules.decision import Question
from federation.delivery.rules.facts import CONFIRMATION, END, SCALER
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.status import ClusterStatus
from federation.planning.federatedobject.finished import evidence_of_event

_LOOK_UP_PAUSE_S = 30.0
"""How long a member that failed to answer about a new object is not asked about others."""
_AGAIN_S = 0.1
"""When to look again if an answer led to the same question: the configuration of admission has changed meanwhile."""


@dataclass(slots=True)
class _Asked:
    """An open question about the object in a cluster."""

    cluster: str
    question: Question
    future: "asyncio.Future[Any]"
    until_s: float
    is_late: bool = False
    """Whether the reconcile that asked has not waited for the answer."""
    is_recorded: bool = False
    """Whether the answer is recorded and the operation has ended. The future is done an iteration of the event loop
    earlier; a decision in between would find the operation under way, and nothing would wake the object again."""


class Questions:
    """Asks on behalf of reconciles. `enqueue` requeues a federated object."""

    def __init__(self, depot: Depot, admission: HostAdmission, drift: DriftReports) -> None:
        self._executor = depot.executor
        self._writer = depot.writer
        self._records = depot.records
        self._admission = admission
        self._drift = drift
        self._clock = depot.host.clock
        self._grace_s = depot.grace_s
        self._enqueue = depot.enqueue
        self._look_up_from_s: dict[str, float] = depot.kept.by_cluster({})

    async def answers(self, propagation: Propagation) -> AsyncIterator[str]:
        """Ask what the decisions need to know, and yield each cluster whose answer allows another decision.

        The caller decides again about a yielded cluster before it asks for the next one.
        """
        asked: list[_Asked] = []
        before: set[tuple[str, Question]] = set()
        try:
            while True:
                for cluster, decision in propagation.decisions.items():
                    question = decision.question
                    if question is None or any(each.cluster == cluster for each in asked):
                        continue
                    if (cluster, question) in before:
                        continue
                    before.add((cluster, question))
                    if (one := self._ask(propagation, cluster, question)) is not None:
                        asked.append(one)
                asked = [each for each in asked if not self._is_given_up(each)]
                if not asked:
                    return
                remaining_s = min(each.until_s for each in asked) - self._clock.monotonic()
                await wait_for_any(self._clock, [each.future for each in asked], remaining_s)
                answered = [each for each in asked if each.is_recorded]
                asked = [each for each in asked if not each.is_recorded]
                for each in answered:
                    if self._is_answered(propagation, each):
                        yield each.cluster
                        if propagation.decisions[each.cluster].question is each.question:
                            propagation.recheck(_AGAIN_S)
        finally:
            for each in asked:
                each.is_late = True

    def _is_given_up(self, asked: _Asked) -> bool:
        """Return True if no reconcile waits for the answer any longer."""
        if asked.future.done():
            return False
        is_of_member = asked.question is not Question.ADMISSION
        asked.is_late = self._clock.monotonic() >= asked.until_s or (
            is_of_member and self._executor.is_slow(asked.cluster)
        )
        return asked.is_late

    def _ask(self, propagation: Propagation, cluster: str, question: Question) -> _Asked | None:
        key, now_s = propagation.aim.subject.member_key(cluster), self._clock.monotonic()
        until_s = now_s + (self._admission.grace_s if question is Question.ADMISSION else self._grace_s)
        match question:
            case Question.LOOK_UP:
                future = self._look_up(propagation, key)
            case Question.CONFIRM:
                future = self._submit(propagation, key, partial(self._writer.confirm, key=key))
            case Question.END:
                uid = str(propagation.started_runs.get(cluster, {}).get("uid", ""))
                future = self._submit(propagation, key, partial(find_end, key=key, uid=uid))
            case Question.SCALER:
                future = self._submit(propagation, key, partial(_find_scaler, key))
            case Question.ADMISSION:
                future = self._admission.ask(propagation.aim.subject, cluster)
            case _:
                assert_never(question)
        if future is None:
            return None
        asked = _Asked(cluster, question, future, until_s)
        if future.done():
            # Refused at once. A callback would run only after the decision that follows.
            self._record(propagation, key, asked, future)
        else:
            future.add_done_callback(partial(self._record, propagation, key, asked))
        return asked

    def _look_up(self, propagation: Propagation, key: MemberKey) -> "asyncio.Future[Outcome] | None":
        """Ask a member whose cache is incomplete whether it has a new object, so that it need not wait for lists.

        One that is slow or failed lately is not asked: the requests that it still answers serve its lists.
        """
        cluster = key.cluster
        if self._records.take_late_absence(key):
            known: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            known.set_result(Outcome(ClusterStatus.OK))
            return known
        if self._executor.is_slow(cluster) or self._clock.monotonic() < self._look_up_from_s.get(cluster, 0.0):
            return None
        if self._executor.is_pending(key):
            return None
        if self._executor.is_full(cluster):
            propagation.recheck(BRIEF_S)
            return None
        return self._submit(propagation, key, partial(self._writer.confirm, key=key))

    def _submit(self, propagation: Propagation, key: MemberKey, action: Action) -> "asyncio.Future[Outcome]":
        return self._executor.submit(key, action, owner=(propagation.aim.key, key))

    def _is_answered(self, propagation: Propagation, asked: _Asked) -> bool:
        """Return whether the answer allows another decision."""
        if asked.future.cancelled():
            return False
        outcome = asked.future.result()
        if asked.question is Question.ADMISSION:
            return True
        if outcome.status is ClusterStatus.OK and asked.question in (Question.LOOK_UP, Question.CONFIRM):
            propagation.absent.add(asked.cluster)
        elif outcome.status is ClusterStatus.WAITING_FOR_REMOVAL and asked.question in (Question.CONFIRM, Question.END):
            propagation.found[asked.cluster] = outcome.object
        elif asked.question is Question.LOOK_UP:
            # It has the object, or did not answer: the reconcile after its complete list goes on.
            if outcome.status is ClusterStatus.CLIENT_RETRIEVAL_FAILED:
                propagation.recheck(BRIEF_S)  # after a start, the connections follow the clusters
            return False
        return True

    def _record(self, propagation: Propagation, key: MemberKey, asked: _Asked, future: "asyncio.Future[Any]") -> None:
        """Record an answer, and requeue the object if its reconcile did not wait for it."""
        asked.is_recorded = True
        if future.cancelled():
            return
        if future.exception() is None and asked.question is not Question.ADMISSION:
            self._record_answer(propagation, key, asked, future.result())
        if asked.is_late:
            self._enqueue(propagation.aim.key)

    def _record_answer(self, propagation: Propagation, key: MemberKey, asked: _Asked, outcome: Outcome) -> None:
        match asked.question:
            case Question.LOOK_UP:
                if outcome.status is ClusterStatus.OK and asked.is_late:
                    self._records.record_late_absence(key)
                elif outcome.status not in _ANSWERS:
                    self._look_up_from_s[key.cluster] = self._clock.monotonic() + _LOOK_UP_PAUSE_S
            case Question.CONFIRM:
                is_checked = self._records.get(key).overdue_at_s is not None
                if is_checked and (outcome.status is ClusterStatus.OK or outcome.object is not None):
                    is_ours = outcome.status is not ClusterStatus.OK
                    self._records.record_check(key, outcome.object if is_ours else None)
                elif outcome.status is ClusterStatus.OK:
                    self._record_absence(propagation, key)
                elif outcome.object is not None:
                    self._records.record_write(key, outcome.object, "", is_subset=True)
                else:
                    status = ClusterStatus.RETRIEVAL_FAILED
                    self._records.record_failure(key, status, outcome.message, CONFIRMATION)
            case Question.END:
                self._record_end(propagation, key, outcome)
            case Question.SCALER:
                self._record_scaler(propagation, key, outcome)

    def _record_absence(self, propagation: Propagation, key: MemberKey) -> None:
        """Record that the member lacks the object. The steps counted the pods that it may have had: plan them again."""
        is_counted = self._records.get(key).sent is not None
        self._records.record_absence(key)
        if is_counted:
            self._enqueue(propagation.aim.key)

    def _record_end(self, propagation: Propagation, key: MemberKey, outcome: Outcome) -> None:
        told = outcome.object
        if outcome.status is ClusterStatus.FINISHED and told is not None:
            end = evidence_of_event(propagation.federated, succeeded=told["succeeded"], time=told["time"])
            self._records.record_finished(key, end)
        elif outcome.status is ClusterStatus.OK:
            uid = str(propagation.started_runs.get(key.cluster, {}).get("uid", ""))
            self._records.record_end_unknown(key, uid)
        elif not outcome.is_ok:
            self._records.record_failure(key, ClusterStatus.RETRIEVAL_FAILED, outcome.message, END)

    def _record_scaler(self, propagation: Propagation, key: MemberKey, outcome: Outcome) -> None:
        if not outcome.is_ok:
            self._records.record_failure(key, ClusterStatus.RETRIEVAL_FAILED, outcome.message, SCALER)
            return
        self._records.record_retry(key)
        before = self._records.get(key).scaler_name
        if self._records.record_scaler(key, outcome.message):
            self._drift.report_scaler(propagation.federated, key.cluster, before, outcome.message)


_ANSWERS = (ClusterStatus.OK, ClusterStatus.WAITING_FOR_REMOVAL, ClusterStatus.CLIENT_RETRIEVAL_FAILED)
"""Outcomes of a look-up after which the cluster may be asked about others at once."""


async def _find_scaler(key: MemberKey, client: Client) -> Outcome:
    try:
        return Outcome(ClusterStatus.OK, message=await find_scaler(client, key))
    except (ApiError, ClusterError) as error:
        return Outcome(ClusterStatus.RETRIEVAL_FAILED, message=f"its autoscalers cannot be listed: {error}")
