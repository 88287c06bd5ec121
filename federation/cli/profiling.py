"""`fedctl serve --profile`: profile the process, and write the profile at its end and at each SIGUSR1."""

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path

import structlog

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.profiler import Profiler, to_summary_path

_log = structlog.get_logger(__name__)
_PLUMBING = (
    "federation.assembly",
    "federation.apimachinery.tasks",
    "federation.cli",
    "federation.existinghost",
    "federation.leadership",
    "federation.processrole",
    "federation.runtime.controller",
    "federation.wiring",
)
"""Modules that run the others: their name says nothing about the work."""


async def profiled(work: Coroutine[None, None, None], path: Path) -> None:
    """Do the work; profile the process meanwhile, and write the profile to `path` and its summary beside it."""
    try:
        _check(path)
        profiler = Profiler()
    except ConfigurationError:
        work.close()
        raise

    def write() -> None:
        try:
            profiler.write(path, _PLUMBING)
        except OSError as error:
            _log.error("profile cannot be written", path=str(path), error=error.strerror)
        else:
            _log.info("profile written", path=str(path), summary=str(to_summary_path(path)))

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, write)
    profiler.start()
    try:
        await work
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)
        profiler.stop()
        write()


def _check(path: Path) -> None:
    """Raise ConfigurationError if one of the files cannot be written: at the end it would be too late."""
    for each in (path, to_summary_path(path)):
        try:
            each.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            each.open("a").close()
        except OSError as error:
            raise ConfigurationError(
                f"--profile-file {each}: {error.strerror}; name a file that can be written"
            ) from error
