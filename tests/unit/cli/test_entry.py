"""Ctrl-C before the commands are imported."""

import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize("command", ["serve", "up", "demo"])
def test_ctrl_c_while_starting_is_quiet_and_exits_with_130(command: str) -> None:
    program = "from federation.cli import entry; print('ready', flush=True); entry.main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, command, "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == ""
        assert process.wait(30) == 130
