"""A circuit breaker: after some failures in a row nobody waits for a dead server; one probe at a time finds it alive.

Closed lets everything through. Open refuses until its pause ends, then becomes half-open, which lets one call through:
its answer closes the circuit, its failure opens it again for twice as long. Any Kubernetes answer counts as alive, also
an error; only no answer counts as failure. Pure but for the clock; `guard.py` uses it and reads next.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from federation.base.clock import Clock


class Circuit(StrEnum):
    """The three states."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True)
class BreakerOptions:
    """When to open and for how long."""

    failures_max: int = 5
    """Failures in a row that open the circuit."""
    pause_s_min: float = 1.0
    pause_s_max: float = 30.0


class Breaker:
    """The circuit of one server."""

    def __init__(
        self, clock: Clock, options: BreakerOptions | None = None, jitter: Callable[[], float] = random.random
    ) -> None:
        self.state = Circuit.CLOSED
        self._clock = clock
        self._options = options or BreakerOptions()
        self._jitter = jitter
        self._failures = 0
        self._pause_s = self._options.pause_s_min
        self._until_s = 0.0

    def wait_s(self) -> float:
        """Return 0 when a call may pass now, as the probe if the circuit was open; else seconds until one may."""
        if self.state is Circuit.CLOSED:
            return 0.0
        now = self._clock.monotonic()
        if now < self._until_s:
            return self._until_s - now
        # The probe's own deadline is unknown here; if its caller vanishes, another probe passes after one more pause.
        self.state = Circuit.HALF_OPEN
        self._until_s = now + self._pause_s
        return 0.0

    @property
    def retry_in_s(self) -> float:
        """Seconds until `wait_s` would let a call pass, without asking for it."""
        return 0.0 if self.state is Circuit.CLOSED else max(0.0, self._until_s - self._clock.monotonic())

    def succeed(self) -> bool:
        """Note an answer; True when it closed the circuit."""
        self._failures = 0
        if self.state is Circuit.CLOSED:
            return False
        self.state = Circuit.CLOSED
        self._pause_s = self._options.pause_s_min
        return True

    def fail(self) -> None:
        """Note that no answer came."""
        self._failures += 1
        if self.state is Circuit.HALF_OPEN:
            self._pause_s = min(self._pause_s * 2, self._options.pause_s_max)
            self._open()
        elif self.state is Circuit.CLOSED and self._failures >= self._options.failures_max:
            self._open()

    def _open(self) -> None:
        self.state = Circuit.OPEN
        self._until_s = self._clock.monotonic() + self._pause_s * (0.8 + 0.2 * self._jitter())
