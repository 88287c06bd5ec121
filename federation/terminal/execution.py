"""Run the work of a command, and report an error: one line on standard error and an exit code.

asyncio and uvloop are imported when a command runs: every command line imports this module.
"""

import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer

from federation.apimachinery import memory
from federation.apimachinery.controlcharacters import escape
from federation.apimachinery.filelimit import raise_file_limit


def execute(command: Coroutine[Any, Any, int | None]) -> None:
    """Run the command and exit with the code that it returns."""
    import asyncio  # noqa: PLC0415  # see the module's docstring

    import uvloop  # noqa: PLC0415

    from federation.terminal.escaping import escaped_output  # noqa: PLC0415  # it imports rich

    memory.tune_collector()
    with escaped_output(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(command)
    if code:
        raise typer.Exit(code)


async def until_signal(work: Coroutine[None, None, None]) -> int:
    """Run the coroutine until it ends, or until SIGINT or SIGTERM cancels it, which counts as success.

    Whatever runs until a signal has many connections, so it may open as many files as the system allows.
    """
    import asyncio  # noqa: PLC0415  # see the module's docstring

    raise_file_limit()
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
    line = escape(" ".join(message.split()))
    print(f"fedctl: {line}", file=sys.stderr)
    sys.exit(code)


def fail_output(error: OSError, code: int = 1) -> NoReturn:
    """Report output that cannot be written.

    Standard output is redirected first: the interpreter flushes it at exit and would print the same error again.
    """
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123  # a descriptor, not a file
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    fail(f"{error.filename or 'output'}: {error.strerror or error}", code)
