"""A circuit breaker: after several failures in a row, calls fail at once instead of waiting for a dead server.

A closed circuit admits every call. An open circuit refuses calls until its pause ends; it then becomes half-open and
admits one probe. A successful probe closes the circuit; a failed one opens it again for twice as long. Any response is
a success, errors included; only a missing response is a failure. No I/O; `limitedtransport.py` uses it for members.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from federation.apimachinery.clock import Clock


class Circuit(StrEnum):
    """States of a circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True)
class BreakerOptions:
    """Thresholds of a circuit breaker."""

    failures_max: int = 5
    """Failures in a row that open the circuit."""
    pause_s_min: float = 1.0
    pause_s_max: float = 30.0


class Breaker:
    """The circuit breaker of one server."""

    def __init__(
        self, clock: Clock, options: BreakerOptions | None = None, jitter: Callable[[], float] = random.random
    ) -> None:
        self.state = Circuit.CLOSED
        self.answered_s = float("-inf")
        """The monotonic time of the last response or watch event, minus infinity before the first."""
        self._clock = clock
        self._options = options or BreakerOptions()
        self._jitter = jitter
        self._failures = 0
        self._pause_s = self._options.pause_s_min
        self._until_s = 0.0

    @property
    def retry_in_s(self) -> float:
        """Seconds until `try_acquire` can succeed; 0 when it would succeed now."""
        return 0.0 if self.state is Circuit.CLOSED else max(0.0, self._until_s - self._clock.monotonic())

    def try_acquire(self) -> bool:
        """Admit a call and return True, or return False; after a pause the admitted call is the probe."""
        if self.state is Circuit.CLOSED:
            return True
        now = self._clock.monotonic()
        if now < self._until_s:
            return False
        # The probe may be cancelled and never report. Another probe is therefore admitted after one more pause.
        self.state = Circuit.HALF_OPEN
        self._until_s = now + self._pause_s
        return True

    def record_event(self) -> None:
        """Record an event of a watch: the server lives, but an open circuit stays open until it responds to a call."""
        self.answered_s = self._clock.monotonic()

    def record_success(self) -> bool:
        """Record a response; return True when it closed the circuit."""
        self.answered_s = self._clock.monotonic()
        self._failures = 0
        if self.state is Circuit.CLOSED:
            return False
        self.state = Circuit.CLOSED
        self._pause_s = self._options.pause_s_min
        return True

    def record_failure(self) -> None:
        """Record that no response came."""
        self._failures += 1
        if self.state is Circuit.HALF_OPEN:
            self._pause_s = min(self._pause_s * 2, self._options.pause_s_max)
            self._open()
        elif self.state is Circuit.CLOSED and self._failures >= self._options.failures_max:
            self._open()

    def _open(self) -> None:
        self.state = Circuit.OPEN
        self._until_s = self._clock.monotonic() + self._pause_s * (0.8 + 0.2 * self._jitter())
