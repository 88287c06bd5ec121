"""The delivery of one federated object to clusters: observe, decide, act, and decide again where an answer came.

The decision about one cluster is one table (`rules/decide.py`). Acting on it records the status, and starts the
operation if there is one. What has to be asked first is asked by `questions.py`.
"""

from collections.abc import Iterable

from federation.delivery.members.depot import Depot
from federation.delivery.members.memberoperations import MemberOperations
from federation.delivery.members.propagation import Propagation
from federation.delivery.observer import Observer
from federation.delivery.questions import Questions
from federation.delivery.rules.decide import decide
from federation.delivery.rules.decision import Decision
from federation.delivery.rules.facts import Facts
from federation.delivery.rules.memberrecord import Sent, State
from federation.delivery.rules.plan import ClusterState, Operation
from federation.planning.steps.memberstate import to_unobserved
from federation.runtime.events import WARNING

_AT_REST = frozenset(("as wanted", "nothing", "gone"))
"""The rows of objects that need nothing."""


_ENDS_RUN = frozenset((Operation.CREATE, Operation.DELETE, Operation.RELEASE))
"""The operations after which the object that was there does not count any more."""


class ClusterDelivery:
    """Delivers objects to clusters."""

    def __init__(self, depot: Depot, observer: Observer, operations: MemberOperations, questions: Questions) -> None:
        self._observer = observer
        self._operations = operations
        self._questions = questions
        self._records = depot.records
        self._recorder = depot.host.recorder

    async def deliver(self, propagation: Propagation, clusters: Iterable[ClusterState]) -> None:
        """Decide about the object in each of the clusters, start what they need, and wait for the fast operations."""
        by_name = {cluster.name: cluster for cluster in clusters}
        for cluster in by_name.values():
            self._deliver(propagation, cluster)
        async for name in self._questions.answers(propagation):
            self._deliver(propagation, by_name[name])
        await self._operations.wait(propagation)

    def preview(self, propagation: Propagation, clusters: Iterable[ClusterState]) -> dict[str, Decision]:
        """Return what would be decided now about the object in each of the clusters, without acting on it."""
        return {cluster.name: decide(self._observe(propagation, cluster)) for cluster in clusters}

    def _deliver(self, propagation: Propagation, cluster: ClusterState) -> None:
        facts = self._observe(propagation, cluster)
        self._act(propagation, facts, decide(facts))

    def _observe(self, propagation: Propagation, cluster: ClusterState) -> Facts:
        return self._observer.observe(propagation.aim, cluster, propagation.known(cluster.name))

    def _act(self, propagation: Propagation, facts: Facts, decision: Decision) -> None:
        cluster = facts.cluster.name
        propagation.decisions[cluster] = decision
        propagation.recheck(decision.recheck_after_s)
        if facts.record.losses and facts.record.state is State.CACHED and decision.row in _AT_REST:
            self._records.record_kept_writes(propagation.aim.subject.member_key(cluster))
        if facts.finished is None:
            propagation.finished.pop(cluster, None)
        else:
            propagation.finished[cluster] = facts.finished
        if facts.started is None or decision.operation in _ENDS_RUN:
            propagation.started_runs.pop(cluster, None)
        else:
            propagation.started_runs[cluster] = facts.started
        if decision.status is None:
            propagation.results.pop(cluster, None)
            return
        live = facts.live if decision.shows_object else None
        propagation.record(cluster, decision.status, live, decision.message)
        if decision.is_refusal:
            text = f'cluster "{cluster}": {decision.message}'
            self._recorder.event(propagation.federated, WARNING, decision.status.value, text)
        if decision.operation is not None:
            self._record_sent(propagation, facts, decision)
            self._operations.start(propagation, cluster, decision, facts.live)

    def _record_sent(self, propagation: Propagation, facts: Facts, decision: Decision) -> None:
        """Record what the member of a divided workload may act by from now on."""
        write, subject = decision.write, propagation.aim.subject
        if write is not None and subject.renderer.scheduled:
            before = None if facts.record.sent is None else facts.record.sent.unobserved
            unobserved = to_unobserved(subject.type_.resource, before, facts.live, write.desired.object)
            self._records.record_sent(write.key, Sent(unobserved, write.desired.hash))
