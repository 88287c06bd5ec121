"""Structured logs on standard error, as text or as JSON lines.

The command line calls `configure` once; library code only calls `structlog.get_logger(__name__)`. Two levels are used:
info for operators, debug for the rest. Errors carry `exception`.
"""

import logging
import sys
from typing import Literal

import structlog


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
            colors=sys.stderr.isatty(), pad_event_to=28, exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if fmt == "json" else structlog.processors.StackInfoRenderer(),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
