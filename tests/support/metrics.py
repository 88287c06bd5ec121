"""Metrics of this process, which has the worlds of all tests before: reading all of them takes tens of milliseconds."""

from collections.abc import Mapping

from prometheus_client import REGISTRY


def sample_of(name: str, labels: Mapping[str, str] | None = None) -> float | None:
    """Return the value of one sample, None if there is none; only its metric is read."""
    wanted = dict(labels or {})
    for metric in REGISTRY.restricted_registry([name]).collect():
        for sample in metric.samples:
            if sample.name == name and sample.labels == wanted:
                return float(sample.value)
    return None
