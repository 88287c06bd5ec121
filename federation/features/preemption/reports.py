"""Report preemptions: Events on both workloads, a condition on the loser of replicas, and a record in the journal."""

from collections.abc import Mapping

import orjson

from federation.apimachinery.amounts import to_count
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.features.preemption import names
from federation.features.preemption.names import EVENT_GIVES_WAY, EVENT_PREEMPTS, EVENT_ROOM_AGAIN
from federation.journal.decisions import DecisionRecord, Journal
from federation.runtime.controller import key_of
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.scheduling.yields import Yields, named_in


class Reports:
    """Writes events, conditions and records."""

    def __init__(self, host: Host, journal: Journal) -> None:
        self._objects = host.objects
        self._recorder = host.recorder
        self._journal = journal
        self._clock = host.clock

    def gives_way(self, federated: Object, count: int, cluster: str, winner: Object) -> None:
        """Emit an Event on both workloads."""
        replicas = to_count(count, "replica")
        loses, gains = name_of(federated)[0], name_of(winner)[0]
        to, of = named_in(loses, title(winner)), named_in(gains, title(federated))
        message = f"{replicas} in {cluster} give way to {to}, which has a higher priority"
        self._recorder.event(federated, WARNING, EVENT_GIVES_WAY, message)
        message = f"{replicas} of {of} give way in {cluster}"
        self._recorder.event(winner, NORMAL, EVENT_PREEMPTS, message)

    async def makes_room(
        self, winner: Object, placed: Mapping[str, int], cluster: str, chosen: Mapping[str, int]
    ) -> None:
        """Record in the journal, for the waiting workload, the workloads that give way to it."""
        namespace, name = name_of(winner)
        listed = ", ".join(f"{to_count(n, 'replica')} of {named_in(namespace, who)}" for who, n in chosen.items())
        explanation = {
            "outcome": EVENT_PREEMPTS,
            "reason": f"in {cluster}, replicas of lower priority give way: {listed}",
            "generation": winner["metadata"].get("generation"),
            "placements": placed,
        }
        identity = (DEPLOYMENTS.group, DEPLOYMENTS.kind, namespace, name)
        now, text = self._clock.now(), orjson.dumps(explanation)
        await self._journal.append(DecisionRecord(now, *identity, EVENT_PREEMPTS, duration_ms=0.0, explanation=text))

    def returns(self, federated: Object, clusters: list[str]) -> None:
        """Tell a workload where its replicas may return."""
        message = f"replicas may return to {', '.join(clusters)}: the room is not needed any more"
        self._recorder.event(federated, NORMAL, EVENT_ROOM_AGAIN, message)

    async def state(self, federated: Object, yields: Yields) -> None:
        """Set the condition of a workload that gave way, if it differs."""
        namespace, _ = name_of(federated)
        parts = [
            f"{to_count(each.count, 'replica')} in {cluster} to {named_in(namespace, each.to)}"
            for cluster, each in sorted(yields.items())
        ]
        status, reason = ("True", EVENT_GIVES_WAY) if parts else ("False", EVENT_ROOM_AGAIN)
        key, message = key_of(federated), "; ".join(parts)
        await self._objects.set_condition(key, names.GAVE_WAY, status=status, reason=reason, message=message)


def name_of(federated: Object) -> tuple[str, str]:
    """Return namespace and name of a workload."""
    return federated["metadata"].get("namespace", ""), federated["spec"]["template"]["metadata"].get("name", "")


def title(federated: Object) -> str:
    """Return a Deployment for people, and for the record of those that give way to it."""
    return f"{DEPLOYMENTS.kind} {'/'.join(name_of(federated))}"
