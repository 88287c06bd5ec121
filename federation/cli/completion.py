"""`kubectl_complete-fed`: kubectl runs it to complete `kubectl fed …`."""

import os
import shlex
import sys

from federation.cli.main import main
from federation.terminal.candidates import VARIABLE

_NO_FILES = ":4"
"""The last line for kubectl: complete with nothing else, as cobra's ShellCompDirectiveNoFileComp."""


def complete_for_kubectl() -> None:
    """Print candidates for `kubectl fed …`; the arguments are the words behind `fed`, the last one incomplete."""
    words = sys.argv[1:] or [""]
    os.environ |= {
        VARIABLE: "complete_bash",
        "COMP_WORDS": shlex.join(["fedctl", *words]),
        "COMP_CWORD": str(len(words)),
    }
    try:
        main([])
    except SystemExit:
        print(_NO_FILES)
