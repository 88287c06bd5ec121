"""Where `fedctl` begins: Ctrl-C ends it quietly from the first moment, while the commands are still being imported.

Imports take a few tenths of a second in which Python would answer SIGINT with a traceback of the import machinery.
Nothing is open yet then, so the process just leaves. `main.py` takes over with Python's own handler.
"""

import os
import signal


def _leave(signum: int, frame: object) -> None:
    del signum, frame
    os._exit(130)


signal.signal(signal.SIGINT, _leave)


def main() -> None:
    """Import the commands and run fedctl."""
    from federation.cli.main import main as run  # noqa: PLC0415  # what takes the time that this module covers

    run()
