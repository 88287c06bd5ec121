"""Structured logs on standard error, as text or as JSON lines.

The command line calls `configure` once; library code only calls `structlog.get_logger(__name__)`. Two levels are used:
info for operators, debug for the rest. Errors carry `exception`.
"""

import io
import logging
import sys
from typing import Literal, TextIO

import structlog

from federation.apimachinery.controlcharacters import escape


def configure(fmt: Literal["text", "json"] = "text", level: str = "info") -> None:
    """Write log lines of `level` and above to standard error in the given format.

    Nothing changes if this process has configured its logs already: a test that runs a command keeps its own.
    """
    if structlog.is_configured():
        return
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if fmt == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), pad_event_to=28, exception_formatter=_format_exception
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if fmt == "json" else structlog.processors.StackInfoRenderer(),
            _escape_values,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")


def _escape_values(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape texts of members and users; values of other types are shown by repr(), which escapes."""
    return {key: escape(value) if isinstance(value, str) else value for key, value in event.items()}


def _format_exception(output: TextIO, problem: structlog.typing.ExcInfo) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, problem)
    output.write(escape(text.getvalue()))
