"""One federated object in one cluster: look, decide, submit, and take the result down.

`Dispatcher.visit` is called for every cluster that the object is or was in; what it starts runs on the cluster's own
lane. `Round` collects the statuses of one reconcile; `settle` waits for what answers soon and leaves the rest: whoever
finishes later has its result in the ledger and the object is reconciled again. No reconcile waits for a slow member.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import Object
from federation.base.clock import Clock
from federation.client.protocol import Client
from federation.controllers.sync.copies import Copies
from federation.controllers.sync.followers import Arrivals
from federation.dispatch.executor import Action, Executor
from federation.dispatch.ledger import Failure, Ledger, MemberKey, generation_of, revision_of
from federation.dispatch.operations import MemberWriter, Outcome, Write, wanted_for
from federation.dispatch.plan import (
    UNKNOWN,
    ClusterFacts,
    Decision,
    ObjectFacts,
    Operation,
    Removal,
    decide,
    is_converged,
    is_managed_refused,
    is_other_derived_service,
)
from federation.dispatch.status import ClusterStatus
from federation.planning.memberobject import Renderer, RenderError
from federation.planning.naming import federated_object_name
from federation.planning.retention import RetentionError, is_replicas_retained
from federation.runtime.controller import Key
from federation.runtime.events import WARNING, Recorder
from federation.runtime.members import Members

_UNDER_WAY = {
    Operation.CREATE: ClusterStatus.PENDING_CREATE,
    Operation.UPDATE: ClusterStatus.UPDATE_TIMED_OUT,
    Operation.DELETE: ClusterStatus.WAITING_FOR_REMOVAL,
    Operation.RELEASE: ClusterStatus.WAITING_FOR_REMOVAL,
}
_UNANSWERED = {
    Operation.CREATE: ClusterStatus.CREATION_TIMED_OUT,
    Operation.UPDATE: ClusterStatus.UPDATE_TIMED_OUT,
    Operation.DELETE: ClusterStatus.DELETION_TIMED_OUT,
    Operation.RELEASE: ClusterStatus.LABEL_REMOVAL_TIMED_OUT,
}

_CONFIRMATION = "confirmation"
"""Stands for the content in the ledger's failures when a member was only asked."""
_LOOK_AGAIN_S = 0.1
"""How often a wait looks whether a member has become slow meanwhile."""


@dataclass(slots=True)
class _Started:
    """An operation of this round that is not taken down yet."""

    cluster: str
    operation: Operation
    future: "asyncio.Future[Outcome]"


@dataclass(slots=True)
class Round:
    """What one reconcile of one federated object found out, by cluster."""

    key: Key
    federated: Object
    type_: FederatedType
    annotations: Mapping[str, str]
    renderer: Renderer
    statuses: dict[str, ClusterStatus] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    started: list[_Started] = field(default_factory=list)
    is_over: bool = False
    is_premature: bool = False
    """Whether something is waited for that is expected at once: what was found is not worth telling yet."""
    resources_updated: bool = False
    recheck_after_s: float | None = None

    def recheck(self, after_s: float) -> None:
        """Ask for another reconcile in that many seconds, or earlier when something earlier was asked for."""
        self.recheck_after_s = after_s if self.recheck_after_s is None else min(self.recheck_after_s, after_s)

    def record(self, cluster: str, status: ClusterStatus, live: Object | None = None, message: str = "") -> None:
        """Take down a cluster's status, with the generation of the object that it is about."""
        self.statuses[cluster] = status
        self.generations[cluster] = generation_of(live)
        if message:
            self.messages[cluster] = message

    @property
    def source_name(self) -> str:
        """The name of the objects in the members."""
        return str(self.federated["spec"]["template"]["metadata"]["name"])


def begin_round(key: Key, federated: Object, type_: FederatedType) -> Round:
    """Return an empty round for a federated object."""
    annotations = federated["metadata"].get("annotations") or {}
    return Round(key, federated, type_, annotations, Renderer(federated, type_))


class Dispatcher:
    """Looks, decides and submits; `enqueue` asks for another reconcile of a federated object."""

    def __init__(
        self,
        members: Members,
        executor: Executor,
        ledger: Ledger,
        copies: Copies,
        arrivals: Arrivals,
        recorder: Recorder,
        clock: Clock,
        *,
        grace_s: float,
        enqueue: Callable[[Key], None],
    ) -> None:
        self._members = members
        self._executor = executor
        self._ledger = ledger
        self._copies = copies
        self._arrivals = arrivals
        self._recorder = recorder
        self._clock = clock
        self._grace_s = grace_s
        self._enqueue = enqueue
        self._writer = MemberWriter()

    def forget_cluster(self, cluster: str) -> None:
        """Forget what is known of a cluster that left, or that has another endpoint or credentials now."""
        self._executor.forget_cluster(cluster)
        self._ledger.forget_cluster(cluster)
        self._writer.forget_cluster(cluster)

    def key_for(self, round_: Round, cluster: str) -> MemberKey:
        """Return the key of the object's copy in a cluster."""
        return MemberKey(cluster, round_.type_.resource, round_.key.namespace, round_.source_name)

    def look(self, round_: Round, cluster: str) -> tuple[ObjectFacts, Object | None]:
        """Return what is known of the copy: facts, and the object when there is one."""
        observed, live = self._copies.look(self.key_for(round_, cluster))
        if live is not None and is_other_derived_service(round_.annotations, live):
            observed = replace(observed, derived_service_mismatch=True)
        return observed, live

    def visit(self, round_: Round, cluster: ClusterFacts, *, is_selected: bool, is_recorded: bool) -> Decision:
        """Do in one cluster what has to be done, and return the decision that was taken."""
        observed, live = self.look(round_, cluster.name) if cluster.ready else (UNKNOWN, None)
        decision = decide(cluster, is_selected=is_selected, is_recorded=is_recorded, observed=observed)
        if decision.recheck_after_s is not None:
            round_.recheck(decision.recheck_after_s)
        if decision.operation in (Operation.CREATE, Operation.UPDATE):
            self._ensure(round_, cluster.name, None if observed.derived_service_mismatch else live)
        elif decision.operation is Operation.DELETE and live is not None:
            self.remove(round_, cluster.name, live, Removal.DELETE)
        elif decision.status is not None:
            round_.record(cluster.name, decision.status, live)
        elif self._may_appear(round_, cluster.name):
            return Decision(None, ClusterStatus.WAITING_FOR_REMOVAL)
        return decision

    def _may_appear(self, round_: Round, cluster: str) -> bool:
        """Say whether a copy that nobody wants any more may still be made by an earlier write of ours.

        A write under way is waited for. One that was never answered may have taken effect, or still do so, and the
        cache of a member that does not answer says nothing about it: the member itself is asked.
        """
        key = self.key_for(round_, cluster)
        if self._executor.is_under_way(key):
            round_.record(cluster, ClusterStatus.WAITING_FOR_REMOVAL)
            return True
        if not self._ledger.is_in_doubt(key):
            return False
        failure = self._ledger.failure(key, _CONFIRMATION)
        if failure is not None and (wait_s := failure.retry_at_s - self._clock.monotonic()) > 0:
            round_.record(cluster, failure.status, message=failure.message)
            round_.recheck(wait_s)
            return True
        round_.record(cluster, ClusterStatus.WAITING_FOR_REMOVAL)
        self.confirm_gone(round_, cluster).add_done_callback(partial(self._confirmed, round_, key))
        return True

    def _confirmed(self, round_: Round, key: MemberKey, future: "asyncio.Future[Outcome]") -> None:
        """Take down what the member said about a copy that was in doubt, and look at the object again."""
        if future.cancelled() or future.exception() is not None:
            return
        outcome = future.result()
        if outcome.is_ok:
            self._ledger.note_confirmed_gone(key)
        elif outcome.object is not None:
            self._ledger.note_written(key, outcome.object, "", is_subset=True)
        else:
            status = ClusterStatus.RETRIEVAL_FAILED
            self._ledger.note_failed(key, status, outcome.message, _CONFIRMATION, self._clock.monotonic())
        self._enqueue(round_.key)

    def _ensure(self, round_: Round, cluster: str, live: Object | None) -> None:
        key = self.key_for(round_, cluster)
        try:
            desired = round_.renderer.render(cluster)
            paths = round_.type_.paths.replicas_spec if is_replicas_retained(round_.federated) else ()
            write = Write(key, desired, live, round_.annotations, paths)
            if live is not None and not is_managed_refused(live):
                wanted = wanted_for(write, live)
                if is_converged(desired, wanted, live) or self._ledger.is_accepted(key, desired.hash, live):
                    round_.record(cluster, ClusterStatus.OK, live)
                    return
        except RenderError as error:
            self._refuse(round_, cluster, ClusterStatus.APPLY_OVERRIDES_FAILED, str(error))
            return
        except RetentionError as error:
            self._refuse(round_, cluster, ClusterStatus.FIELD_RETENTION_FAILED, str(error))
            return
        operation = Operation.CREATE if live is None else Operation.UPDATE
        failure = self._ledger.failure(key, desired.hash)
        if failure is not None and (wait_s := failure.retry_at_s - self._clock.monotonic()) > 0:
            round_.record(cluster, failure.status, live, failure.message)
            round_.recheck(wait_s)
            return
        wait = self._arrivals.wait(round_.key, round_.federated, cluster, desired.object, live)
        if wait is not None:
            round_.record(cluster, _UNDER_WAY[operation], live, wait.message)
            round_.recheck(wait.recheck_after_s)
            round_.is_premature = round_.is_premature or wait.is_brief
            return
        self._submit(round_, key, operation, desired.hash, lambda client: self._writer.ensure(client, write), live)

    def remove(self, round_: Round, cluster: str, live: Object, removal: Removal) -> None:
        """Delete the copy, or leave it to the member without our label."""
        key = self.key_for(round_, cluster)
        uid = live["metadata"].get("uid", "")
        operation = Operation.DELETE if removal is Removal.DELETE else Operation.RELEASE
        failure = self._ledger.failure(key, uid)
        if failure is not None and (wait_s := failure.retry_at_s - self._clock.monotonic()) > 0:
            round_.record(cluster, failure.status, live, failure.message)
            round_.recheck(wait_s)
            return
        if operation is Operation.DELETE:
            self._submit(round_, key, operation, uid, lambda client: self._writer.remove(client, key, uid), live)
        else:
            self._submit(round_, key, operation, uid, lambda client: self._writer.release(client, key, uid), live)

    def confirm_gone(self, round_: Round, cluster: str) -> "asyncio.Future[Outcome]":
        """Ask the member itself whether the copy is gone; the outcome is OK when it is.

        While an operation on it is under way the answer would mean nothing: then it is not gone.
        """
        key = self.key_for(round_, cluster)
        if self._executor.is_under_way(key):
            waiting: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            waiting.set_result(Outcome(ClusterStatus.WAITING_FOR_REMOVAL, message="an operation is under way"))
            return waiting

        async def ask(client: Client) -> Outcome:
            return await self._writer.confirm(client, key)

        return self._executor.submit(key, ask, owner=(round_.key, key))

    def _submit(
        self, round_: Round, key: MemberKey, operation: Operation, digest: str, action: Action, live: Object | None
    ) -> None:
        """Start the operation; its result goes to the ledger whether somebody still waits for it or not."""
        cluster = key.cluster
        round_.record(cluster, _UNDER_WAY[operation], live)
        if self._executor.is_under_way(key):
            return
        if operation is Operation.DELETE:
            self._ledger.note_deletion(key, is_under_way=True)
        future = self._executor.submit(key, action, owner=(round_.key, key))
        round_.started.append(_Started(cluster, operation, future))
        if future.done():
            # Refused at once. A callback would run only after this round is over.
            self._take_down(round_, key, operation, digest, future)
        else:
            future.add_done_callback(partial(self._take_down, round_, key, operation, digest))

    def recover(self, owner: Hashable) -> None:
        """Try again what failed for want of an answer: the member answers again."""
        key, member_key = cast("tuple[Key, MemberKey]", owner)
        self._ledger.forget_failure(member_key)
        self._enqueue(key)

    def _take_down(
        self,
        round_: Round,
        key: MemberKey,
        operation: Operation,
        digest: str,
        future: "asyncio.Future[Outcome]",
    ) -> None:
        """Put an operation's result into the ledger and, while the round lasts, into the round."""
        self._ledger.note_deletion(key, is_under_way=False)
        if future.cancelled():
            return
        if future.exception() is None:
            self._note(round_, key, operation, digest, future.result())
        if round_.is_over:
            self._enqueue(round_.key)

    def _note(self, round_: Round, key: MemberKey, operation: Operation, digest: str, outcome: Outcome) -> None:
        if outcome.is_ok:
            if operation in (Operation.CREATE, Operation.UPDATE) and outcome.object is not None:
                self._ledger.note_written(key, outcome.object, digest, is_subset=outcome.is_complete)
                self._look_again_if_overtaken(round_, key, outcome.object)
                self._forget_if_seen(key, outcome.object)
            else:
                self._ledger.note_deletion_asked(key, digest)
            round_.resources_updated = True
            round_.record(key.cluster, outcome.status, outcome.object)
            return
        if outcome.is_unanswered and operation in (Operation.CREATE, Operation.UPDATE):
            self._ledger.note_doubt(key)
        failure = self._fail(key, operation, digest, outcome)
        round_.record(key.cluster, failure.status, outcome.object, failure.message)
        round_.recheck(max(failure.retry_at_s - self._clock.monotonic(), 0.0))
        if outcome.is_unanswered and (failure.count > 1 or self._executor.is_slow(key.cluster)):
            # That a cluster is silent is no news about each of its thousand objects: their conditions name it, and
            # events would cost the host more writes than all the other clusters' objects together.
            return
        reason = names.EVENT_OPERATION_IN_CLUSTER_FAILED.format(operation=operation.value)
        self._recorder.event(round_.federated, WARNING, reason, _event_text(operation, key, failure.message))

    def _forget_if_seen(self, key: MemberKey, written: Object) -> None:
        """Leave nothing in the ledger when the cache was faster than the answer to our write."""
        informer = self._members.informer(key.cluster, key.resource)
        if informer is not None and informer.has_seen(str(written["metadata"].get("resourceVersion", ""))):
            self._ledger.note_seen(key, revision_of(written))

    def _look_again_if_overtaken(self, round_: Round, key: MemberKey, written: Object) -> None:
        """Reconcile once more when somebody else wrote right after us: such events are not told apart from our own."""
        cached = self._members.get_cached(key.cluster, key.resource, key.namespace, key.name)
        if revision_of(cached) > revision_of(written):
            self._enqueue(round_.key)

    def _fail(self, key: MemberKey, operation: Operation, digest: str, outcome: Outcome) -> Failure:
        status = _UNANSWERED[operation] if outcome.is_unanswered else outcome.status
        return self._ledger.note_failed(
            key, status, outcome.message, digest, self._clock.monotonic(), retry_after_s=outcome.retry_after_s
        )

    def _refuse(self, round_: Round, cluster: str, status: ClusterStatus, message: str) -> None:
        """Take down a failure that only another template or other overrides can cure."""
        round_.record(cluster, status, message=message)
        self._recorder.event(round_.federated, WARNING, status.value, f'cluster "{cluster}": {message}')

    async def settle(self, round_: Round) -> None:
        """Wait until everything that was started has ended, except on slow members and not longer than the grace."""
        deadline_s = self._clock.monotonic() + self._grace_s
        while (remaining_s := deadline_s - self._clock.monotonic()) > 0:
            awaited = [
                s.future for s in round_.started if not s.future.done() and not self._executor.is_slow(s.cluster)
            ]
            if not awaited:
                break
            everything = asyncio.gather(*awaited, return_exceptions=True)
            patience = asyncio.ensure_future(self._clock.sleep(min(remaining_s, _LOOK_AGAIN_S)))
            try:
                await asyncio.wait((everything, patience), return_when=asyncio.FIRST_COMPLETED)
            finally:
                patience.cancel()
        round_.is_over = True
        for started in round_.started:
            if started.future.done() and not started.future.cancelled() and (error := started.future.exception()):
                raise error


def federated_key(type_: FederatedType, obj: Object) -> Key:
    """Return the key of the federated object that a member's object belongs to."""
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), federated_object_name(metadata["name"], type_.name))


def _event_text(operation: Operation, key: MemberKey, message: str) -> str:
    resource = key.resource
    kind = "/".join(part for part in (resource.group, resource.version, resource.plural) if part)
    return f'{operation.value} {kind} "{key.name}" in cluster "{key.cluster}": {message}'
