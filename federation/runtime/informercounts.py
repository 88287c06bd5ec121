"""Metrics of one informer, by the cluster and resource that it follows."""

import structlog
from prometheus_client import Counter, Gauge

from federation.apimachinery.metrics import show
from federation.apimachinery.resources import Resource
from federation.runtime.admittance import Admittance
from federation.runtime.indexer import Cache

_log = structlog.get_logger(__name__)

_lists = Counter("federation_runtime_informer_lists_total", "Complete lists", ["cluster", "resource"])
_events = Counter("federation_runtime_informer_events_total", "Watch events", ["cluster", "resource"])
_failures = Counter(
    "federation_runtime_informer_failures_total", "Lists and watches that failed", ["cluster", "resource"]
)
_handler_failures = Counter(
    "federation_runtime_informer_handler_failures_total", "Handlers that raised: a bug of ours", ["cluster", "resource"]
)
_objects = Gauge("federation_runtime_informer_objects", "Objects in the cache", ["cluster", "resource"])


class InformerCounts:
    """The metrics of one informer; created at its start with zeros."""

    def __init__(self, cluster: str, resource: Resource, cache: Cache) -> None:
        self._labels = labels = (cluster, resource.group_resource)
        self.lists, self.events, self.failures = (each.labels(*labels) for each in (_lists, _events, _failures))
        self._failed_handlers = _handler_failures.labels(*labels)
        show(_objects.labels(*labels), cache, len)

    def note_failed_handler(self, admittance: Admittance) -> None:
        """Count the exception of a handler that is handled now, and log it unless one was logged recently."""
        self._failed_handlers.inc()
        if admittance.may_log():
            _log.exception("handler failed", cluster=self._labels[0], resource=self._labels[1])
