"""Spans, and the IDs of their traces.

All spans are recorded when they have ended. A delivery's trace has an ID that every process derives from the uid and
the generation of the object, so that nothing is stored and nothing is passed on. `OTEL_*` variables configure sampler,
headers, certificates and batches, as in every program with the SDK.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from federation.tracing.exporter import Exporter

_PROPAGATOR = TraceContextTextMapPropagator()


class Times(NamedTuple):
    """When a span began and ended."""

    start: datetime
    end: datetime


def _to_ns(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6) * 1000


class _IDs(RandomIdGenerator):
    """Random IDs, except for the span that has given ones. Spans are started by one thread."""

    given: SpanContext | None = None

    def generate_span_id(self) -> int:
        return self.given.span_id if self.given is not None else super().generate_span_id()

    def generate_trace_id(self) -> int:
        return self.given.trace_id if self.given is not None else super().generate_trace_id()


class Tracer:
    """Records spans, and sends them in batches to `url` from a thread of its own."""

    def __init__(self, url: str, version: str) -> None:
        self._ids = _IDs()
        resource = Resource.create({"service.version": version})
        if str(resource.attributes["service.name"]).startswith("unknown_service"):
            resource = resource.merge(Resource({"service.name": "federation"}))
        self._provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        self._exporter = Exporter(url)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("federation", version)

    def delivery(self, uid: str, generation: int) -> SpanContext:
        """Return the root of the trace of one generation of an object, the same one in every process."""
        digest = blake2b(f"{uid}/{generation}".encode(), digest_size=24).digest()
        trace_id, span_id = int.from_bytes(digest[:16]), int.from_bytes(digest[16:])
        sampled = self._provider.sampler.should_sample(None, trace_id, "deliver").decision is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        return SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)

    def client(self, headers: Mapping[str, str]) -> SpanContext | None:
        """Return the caller's span by its W3C headers `traceparent` and `tracestate`; None without valid ones."""
        found = get_current_span(_PROPAGATOR.extract(headers, Context())).get_span_context()
        return found if found.is_valid else None

    def record_root(self, name: str, root: SpanContext, times: Times, attributes: Mapping[str, str | int]) -> None:
        """Record the span with the IDs of `root`."""
        self._ids.given = root
        try:
            self._record(name, times, Context(), attributes)
        finally:
            self._ids.given = None

    def record(
        self,
        name: str,
        times: Times,
        parent: SpanContext | None,
        attributes: Mapping[str, str | int],
        *,
        links: Iterable[SpanContext] = (),
        is_request: bool = False,
        error: str = "",
    ) -> None:
        """Record a span below `parent`, or a trace of its own for None. `error` says why it failed."""
        context = Context() if parent is None else set_span_in_context(NonRecordingSpan(parent), Context())
        kind = SpanKind.SERVER if is_request else SpanKind.INTERNAL
        self._record(name, times, context, attributes, kind, [Link(link) for link in links], error)

    def _record(
        self,
        name: str,
        times: Times,
        context: Context,
        attributes: Mapping[str, str | int],
        kind: SpanKind = SpanKind.INTERNAL,
        links: list[Link] | None = None,
        error: str = "",
    ) -> None:
        span = self._tracer.start_span(
            name, context, kind, attributes, links=links, start_time=_to_ns(times.start), set_status_on_exception=False
        )
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(_to_ns(times.end))

    def close(self) -> None:
        """Send what is left. It blocks, for some seconds if the collector does not answer."""
        self._exporter.end_soon()
        self._provider.shutdown()
