"""The requests of gates: one per workload and interval, each answer counts until the next one."""

from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.featureapi.surroundings import GateTransport
from federation.features.waves.rules.waveplan import HTTP_INTERVAL_S
from federation.planning.waves.waverules import HTTPCheck
from federation.runtime.controller import Key

_HEADERS = {"User-Agent": "federation-rollout"}


class HTTPGate:
    """Sends the requests. It lives as long as the controller."""

    def __init__(self, transport: GateTransport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._answers: dict[Key, tuple[HTTPCheck, float, str]] = {}

    def forget(self, key: Key) -> None:
        """Discard the answer about a workload."""
        self._answers.pop(key, None)

    async def problem(self, key: Key, check: HTTPCheck) -> str:
        """Return why the request of a workload's gate fails, "" if it succeeds. It is sent once per interval."""
        known = self._answers.get(key)
        now_s = self._clock.monotonic()
        if known is not None and known[0] == check and now_s < known[1] + HTTP_INTERVAL_S:
            return known[2]
        response = await self._transport.get(Connection(check.url), _HEADERS, timeout_s=check.timeout_s)
        failed = response.problem(f"HTTP status {response.status}", hidden="the gate did not hold")
        problem = "" if response.status == check.expect_status else failed
        self._answers[key] = (check, now_s, problem)
        return problem
