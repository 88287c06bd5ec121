"""Asks the admission checks of a ClusterJobQueue about the jobs that could start (`rules/checks.py`).

Answers are in memory: after a restart the services are asked again. A slow service delays the jobs of its own queue.
"""

from collections.abc import Callable

from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.featureapi.surroundings import GateTransport
from federation.features.queues.rules.checks import Answer, Check, request_body, to_answer
from federation.features.queues.rules.facts import Admitted
from federation.features.queues.rules.queuestate import QueueState
from federation.runtime.controller import DONE, Result

_HEADERS = {"Content-Type": "application/json", "User-Agent": "federation-queue"}


class Checker:
    """Asks about one job per call. `changed` is called after each answer."""

    def __init__(self, transport: GateTransport, state: QueueState, clock: Clock, changed: Callable[[], None]) -> None:
        self._transport = transport
        self._state = state
        self._clock = clock
        self._changed = changed
        self._due: dict[str, Admitted] = {}

    def want(self, key: str, admitted: Admitted) -> None:
        """Record what a job would get, for the next call about it."""
        self._due[key] = admitted

    async def reconcile(self, key: str) -> Result:
        """Ask the checks one after the other, until one does not say Ready."""
        admitted, entry = self._due.pop(key, None), self._state.entries.get(key)
        queue = self._state.queue_of(entry) if entry is not None else None
        if admitted is None or entry is None or queue is None:
            return DONE
        if not self._state.must_ask(key, self._clock.now().timestamp()):
            return DONE  # a round wanted it again while it was asked
        about = {
            "clusterJobQueue": queue.queue.name,
            "jobQueue": entry.queue,
            "job": {"kind": entry.kind, "namespace": entry.namespace, "name": entry.name},
        }
        answer = None
        for check in queue.checks:
            answer = await self._ask(check, request_body(check, about, admitted))
            if not answer.is_ready:
                break
        if answer is not None and self._state.entries.get(key) is entry and self._state.queue_of(entry) is queue:
            self._state.record_answer(key, answer)
        self._changed()
        return DONE

    async def _ask(self, check: Check, body: bytes) -> Answer:
        connection = Connection(check.url, ca_data=check.ca_data)
        response = await self._transport.post(connection, body, _HEADERS, timeout_s=check.timeout_s)
        problem = response.problem(f"it answered with HTTP status {response.status}", hidden="it did not answer")
        return to_answer(check, response.status, response.body, problem, self._clock.now().timestamp())
