"""Metrics of the scheduler, kept out of the plugins.

Time comes in as a function, because this layer has no clock; without it nothing is recorded. A plugin is timed once per
extension point and cycle, over all clusters that it runs for. Cached results (`resultcache.py`) are not recorded.
"""

from collections.abc import Callable

from prometheus_client import Counter, Histogram

_BUCKETS_S = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0, 10.0)

_decisions = Counter("federation_scheduling_decisions_total", "Decisions by outcome", ["outcome"])
_decision_duration = Histogram(
    "federation_scheduling_decision_duration_seconds",
    "Time to decide, waiting for remote plugins included",
    buckets=_BUCKETS_S,
)
_plugin_duration = Histogram(
    "federation_scheduling_plugin_duration_seconds",
    "Time of one plugin at one extension point, over all clusters that it was asked about for a decision",
    ["point", "plugin"],
    buckets=_BUCKETS_S,
)


class SchedulerMetrics:
    """Records durations with the given monotonic clock (seconds); records nothing without one."""

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self._monotonic = monotonic
        self._plugins: dict[tuple[str, str], Histogram] = {}

    def now(self) -> float:
        """Return the clock's seconds, 0 without a clock."""
        return self._monotonic() if self._monotonic else 0.0

    def plugin(self, point: str, name: str, started: float) -> None:
        """Record the duration of a plugin's run that began at `started`."""
        if self._monotonic is None:
            return
        histogram = self._plugins.get((point, name))
        if histogram is None:
            histogram = self._plugins[point, name] = _plugin_duration.labels(point, name)
        histogram.observe(self._monotonic() - started)

    def decision(self, outcome: str, started: float) -> None:
        """Record a decision that began at `started`."""
        if self._monotonic is not None:
            _decision_duration.observe(self._monotonic() - started)
            _decisions.labels(outcome).inc()
