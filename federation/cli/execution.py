"""Run the work of a command, and report an error: one line on standard error and an exit code."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer
import uvloop

from federation.apimachinery import memory


def execute(command: Coroutine[Any, Any, int | None]) -> None:
    """Run the command and exit with the code that it returns."""
    memory.tune_collector()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(command)
    if code:
        raise typer.Exit(code)


async def until_signal(work: Coroutine[None, None, None]) -> int:
    """Run the coroutine until it ends, or until SIGINT or SIGTERM cancels it, which counts as success."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return 0
    return 0


def fail(message: str, code: int = 1) -> NoReturn:
    """Print the message as one line and exit with the code."""
    line = " ".join(message.split())
    print(f"fedctl: {line}", file=sys.stderr)
    sys.exit(code)
