"""A federation as a user has it: `fedctl` and `kubectl` as processes on free ports and temporary directories.

`federation(directory, …)` runs `fedctl up` until the block ends (terminated, then killed). `Kubectl` runs the real kubectl
of the environment against one kubeconfig. Nothing here imports the control plane.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
BIN = Path(sys.executable).parent
FEDCTL = [sys.executable, "-m", "federation.cli.main"]
_START_S = 60.0


def fedctl(
    *arguments: str, check: bool = True, timeout_s: float = 60, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run fedctl to its end."""
    done = subprocess.run(
        [*FEDCTL, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={**os.environ, **environment},
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"fedctl {' '.join(arguments)} exited {done.returncode}: {done.stderr or done.stdout}")
    return done


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The real kubectl against one kubeconfig."""

    kubeconfig: Path

    def __call__(self, *arguments: str, stdin: str | None = None, check: bool = True, timeout_s: float = 60) -> str:
        """Return standard output; AssertionError with standard error when it fails and `check` is set."""
        done = self.run(*arguments, stdin=stdin, timeout_s=timeout_s)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)} exited {done.returncode}: {done.stderr}")
        return done.stdout

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """Return the finished process."""
        return subprocess.run(
            [str(BIN / "kubectl"), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.kubeconfig.parent)},
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """Return the parsed output of `kubectl … -o json`."""
        return json.loads(self(*arguments, "-o", "json"))

    def apply(self, *manifests: dict[str, Any]) -> str:
        """Apply manifests from standard input."""
        return self("apply", "-f", "-", stdin="\n---\n".join(json.dumps(m) for m in manifests))


class Federation:
    """A running `fedctl up`."""

    def __init__(self, directory: Path, process: subprocess.Popen[str], ready_line: str) -> None:
        self.directory = directory
        self.process = process
        self.ready_line = ready_line
        self.kubectl = Kubectl(directory / "kubeconfig")

    def member(self, name: str) -> Kubectl:
        """Return kubectl for one simulated member."""
        return Kubectl(self.directory / "members" / f"{name}.kubeconfig")

    @property
    def members(self) -> list[str]:
        """The names of the simulated members."""
        return sorted(p.name.removesuffix(".kubeconfig") for p in (self.directory / "members").glob("*.kubeconfig"))

    def kill(self) -> None:
        """Kill the control plane as a power cut would (SIGKILL)."""
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> int:
        """Stop as Ctrl-C does and return the exit code."""
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(30)
            raise


def start_federation(directory: Path, *, members: int = 3, arguments: Sequence[str] = ()) -> Federation:
    """Start `fedctl up` and return when it printed its ready line."""
    command = [*FEDCTL, "up", "--dir", str(directory), "--members", str(members), "--port", "0", *arguments]
    with (directory.parent / f"{directory.name}.log").open("a") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    deadline = time.monotonic() + _START_S
    line = ""
    while not line.startswith("ready"):
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        line = process.stdout.readline() if readable else ""
        if not line:
            process.kill()
            process.wait(30)
            process.stdout.close()
            log_text = (directory.parent / f"{directory.name}.log").read_text()[-3000:]
            raise AssertionError(f"fedctl up did not become ready:\n{log_text}")
    return Federation(directory, process, line)


@contextmanager
def federation(directory: Path, *, members: int = 3, arguments: Sequence[str] = ()) -> Iterator[Federation]:
    """Run a federation for the block."""
    running = start_federation(directory, members=members, arguments=arguments)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
        assert running.process.stdout is not None
        running.process.stdout.close()


def eventually(look: Callable[[], T], accept: Callable[[T], bool], *, timeout_s: float = 30, what: str = "") -> T:
    """Return what `look` sees once `accept` holds; AssertionError with the last sight when it takes too long."""
    deadline = time.monotonic() + timeout_s
    while True:
        seen = look()
        if accept(seen):
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"{what or 'the condition'} did not hold within {timeout_s:g} s; last seen: {seen!r}")
        time.sleep(0.1)  # polling a real process: there is no condition to wait on
