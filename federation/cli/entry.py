"""The entry point of `fedctl`: exit quietly on Ctrl-C while the commands are still being imported.

The imports take a few tenths of a second, in which Python would answer SIGINT with a traceback from the import
machinery. Nothing is open yet, so the process can simply exit. `main.py` restores Python's own handler.
"""

import os
import signal

from federation.apimachinery import memory


def _exit(signum: int, frame: object) -> None:
    del signum, frame
    os._exit(130)


signal.signal(signal.SIGINT, _exit)


def main() -> None:
    """Import the commands and run fedctl."""
    memory.pause_collector()  # it would take a fifth of the time of the imports
    from federation.cli.main import main as run  # noqa: PLC0415  # the slow import that the handler above covers

    run()


if __name__ == "__main__":
    main()
