"""Sends spans to a collector, and logs once when that begins to fail and once when it works again.

The SDK logs each attempt through `logging`; here those lines only name the cause. Spans that cannot be sent are lost,
and nothing waits for them.
"""

import logging
import threading
from collections.abc import Sequence

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_log = structlog.get_logger(__name__)
_CAUSE_LENGTH_MAX = 300
_CLOSE_S = 2.0
"""Time for the last spans at the end of the process."""


class _Cause(logging.Filter):
    """Keeps the first line of the SDK's exporter about an export, and lets none through."""

    text = ""

    def filter(self, record: logging.LogRecord) -> bool:
        self.text = self.text or record.getMessage()[:_CAUSE_LENGTH_MAX]
        return False


_cause = _Cause()
logging.getLogger(OTLPSpanExporter.__module__).addFilter(_cause)


class Exporter(SpanExporter):
    """Exports over OTLP/HTTP from the SDK's thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._exporter = OTLPSpanExporter(endpoint=url)
        self._is_failing = False
        self._is_closed = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans; the SDK's exporter retries for some seconds."""
        _cause.text = ""
        result = self._exporter.export(spans)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing != self._is_failing:
            self._is_failing = is_failing
            if is_failing:
                _log.warning("traces cannot be sent and are lost", url=self._url, error=_cause.text)
            else:
                _log.info("traces are sent again", url=self._url)
        return result

    def end_soon(self) -> None:
        """Let running and further exports end after a short time, whether they succeed or not."""
        timer = threading.Timer(_CLOSE_S, self.shutdown)
        timer.daemon = True
        timer.start()

    def shutdown(self) -> None:
        """End retries."""
        if not self._is_closed.is_set():
            self._is_closed.set()
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK lacks its annotation
