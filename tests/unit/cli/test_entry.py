"""Process start and end: Ctrl-C during imports, and standard output that cannot be written."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("command", ["serve", "up", "demo"])
def test_ctrl_c_during_startup_prints_nothing_and_exits_with_130(command: str) -> None:
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_failed_write_to_stdout_is_one_line_without_traceback() -> None:
    program = "from federation.cli import entry; entry.main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program, "version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "fedctl: output: No space left on device\n")
