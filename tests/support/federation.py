"""A federation run like a user's: `fedctl` and `kubectl` processes with free ports and temporary directories.

`federation(directory, …)` runs `fedctl up` until the block ends (terminated, then killed). `Kubectl` runs the real kubectl
of the environment against one kubeconfig; `Kubectl.api` sends the same requests without a process.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, TypeVar

import psutil  # type: ignore[import-untyped]  # it has no stubs of its own

from tests.support.forkserver import Process, start_process

if TYPE_CHECKING:
    from tests.support.rest import Api

T = TypeVar("T")
BIN = Path(sys.executable).parent
CLI, SIMULATOR = "federation.cli.entry", "federation.simulator.__main__"
FEDCTL = [sys.executable, "-m", CLI]
WITHOUT_COLLECTOR = {"GOGC": "off", "GOMEMLIMIT": "256MiB"}
"""Variables of short Go processes: without its garbage collector, kubectl takes a fifth less CPU time."""
PATIENCE_S = 90
"""Default of all waits. A machine that runs other work besides may need most of it; what passes takes seconds."""
_PAUSE_SHARE, _PAUSE_S_MAX = 0.1, 2.0
"""A pause between two looks is this share of the time that was waited, at most so many seconds."""


def fedctl(
    *arguments: str, check: bool = True, timeout_s: float = PATIENCE_S, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run fedctl and return the finished process."""
    done = run_fedctl(arguments, environment={**os.environ, **environment}, timeout_s=timeout_s)
    if check and done.returncode:
        raise AssertionError(f"fedctl {' '.join(arguments)} exited {done.returncode}: {done.stderr or done.stdout}")
    return done


def run_fedctl(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path | None = None,
    timeout_s: float = PATIENCE_S,
) -> subprocess.CompletedProcess[str]:
    """Run fedctl in a folder with just these variables, and return the finished process."""
    with TemporaryFile() as output, TemporaryFile() as errors:
        stdout, stderr = output.fileno(), errors.fileno()
        done = start_process(CLI, arguments, environment=environment, stdout=stdout, stderr=stderr, folder=folder)
        try:
            code = done.wait(timeout_s)
        finally:
            done.kill()
            done.wait(PATIENCE_S)
        return subprocess.CompletedProcess(arguments, code, _text_of(output), _text_of(errors))


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The real kubectl against one kubeconfig."""

    kubeconfig: Path

    def __call__(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout_s: float = PATIENCE_S + 10
    ) -> str:
        """Return standard output; with `check`, AssertionError with standard error when the command fails."""
        done = self.run(*arguments, stdin=stdin, timeout_s=timeout_s)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)} exited {done.returncode}: {done.stderr}")
        return done.stdout

    def run(
        self, *arguments: str, stdin: str | None = None, timeout_s: float = PATIENCE_S + 10
    ) -> subprocess.CompletedProcess[str]:
        """Return the finished process."""
        return subprocess.run(
            [str(BIN / "kubectl"), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=self._environment,
            check=False,
        )

    def popen(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start kubectl with pipes for standard input and output."""
        return subprocess.Popen(
            [str(BIN / "kubectl"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._environment,
        )

    @property
    def _environment(self) -> dict[str, str]:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # kubectl finds its plugin kubectl-fed there
        ours = {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.kubeconfig.parent), "PATH": path}
        return {**os.environ, **WITHOUT_COLLECTOR, **ours}

    def api(self, namespace: str = "default") -> "Api":
        """Return requests over pooled connections, which cost a hundredth of a kubectl: for what is read repeatedly."""
        return _api_of(self.kubeconfig).within(namespace)

    def json(self, *arguments: str) -> Any:
        """Return the parsed output of `kubectl … -o json`."""
        return json.loads(self(*arguments, "-o", "json"))

    def apply(self, *manifests: dict[str, Any]) -> str:
        """Apply manifests from standard input."""
        return self("apply", "-f", "-", stdin="\n---\n".join(json.dumps(m) for m in manifests))


_PROGRESS = re.compile(r"fedctl: \d+ of \d+ simulated members? joined")
_CLIENTS: dict[Path, tuple[int, "Api"]] = {}


def _api_of(kubeconfig: Path) -> "Api":
    """Return the client of a kubeconfig; a rewritten file has another server."""
    from federation.client.kubeconfig import load_kubeconfig
    from tests.support.rest import Api

    written_ns = kubeconfig.stat().st_mtime_ns
    known_ns, api = _CLIENTS.get(kubeconfig, (0, None))
    if api is None or known_ns != written_ns:
        close_clients(kubeconfig)
        api = Api(load_kubeconfig(kubeconfig))
        _CLIENTS[kubeconfig] = written_ns, api
    return api


def close_clients(directory: Path) -> None:
    """Close the connections to servers whose kubeconfig is in this directory."""
    for kubeconfig in [path for path in _CLIENTS if path.is_relative_to(directory)]:
        _CLIENTS.pop(kubeconfig)[1].close()


class Federation:
    """A running `fedctl up` or `fedctl serve`."""

    def __init__(self, directory: Path, process: Process, ready_line: str) -> None:
        self.directory = directory
        self.process = process
        self.ready_line = ready_line
        self.kubectl = Kubectl(directory / "kubeconfig")

    def member(self, name: str) -> Kubectl:
        """Return kubectl for one simulated member."""
        return Kubectl(self.directory / "members" / f"{name}.kubeconfig")

    def api(self, namespace: str = "default", *, member: str = "") -> "Api":
        """Return requests to the host, or to a member, over pooled connections."""
        return (self.member(member) if member else self.kubectl).api(namespace)

    @property
    def members(self) -> list[str]:
        """The names of the simulated members."""
        return sorted(p.name.removesuffix(".kubeconfig") for p in (self.directory / "members").glob("*.kubeconfig"))

    def in_members(self, plural: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """Return an object as the members have it, by member; members without it are left out."""
        found = {member: self.api(namespace, member=member).find(plural, name) for member in self.members}
        return {member: obj for member, obj in found.items() if obj is not None}

    @property
    def log(self) -> str:
        """Standard error of the processes, of all starts on this directory."""
        return log_of(self.directory).read_text()

    def processes(self) -> list[psutil.Process]:
        """The running processes: control plane and simulated members."""
        if self.process.poll() is not None:
            return []
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def kill(self) -> None:
        """Kill the control plane with SIGKILL; AssertionError when the members' process outlives it."""
        running = self.processes()
        self.process.kill()
        self.process.wait(PATIENCE_S)
        _, alive = psutil.wait_procs(running[1:], timeout=PATIENCE_S)
        assert not alive, f"processes outlive the control plane: {alive}"

    def stop(self) -> int:
        """Stop with SIGINT and return the exit code."""
        running = self.processes()
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE_S)
            raise
        _, alive = psutil.wait_procs(running[1:], timeout=PATIENCE_S)
        assert not alive, f"processes outlive the control plane: {alive}"
        return code

    def close(self) -> None:
        """Stop if it runs, and close its pipes."""
        close_clients(self.directory)
        if self.process.poll() is None:
            self.stop()
        assert self.process.stdout is not None
        self.process.stdout.close()


def without_progress(text: str) -> str:
    """Return the lines that are not about members which a busy machine starts slowly."""
    return "".join(line for line in text.splitlines(keepends=True) if not _PROGRESS.match(line))


def log_of(directory: Path) -> Path:
    """Return the file with the processes' standard error, beside the state directory."""
    return directory.parent / f"{directory.name}.log"


def start_federation(
    directory: Path, *, members: int = 3, arguments: Sequence[str] = (), is_fresh: bool = False, **environment: str
) -> Federation:
    """Start `fedctl up` and wait for its ready line."""
    return _start(directory, ["up", "--members", str(members), *arguments], environment, is_fresh=is_fresh)


def start_serve(
    directory: Path, *, arguments: Sequence[str] = (), is_fresh: bool = False, **environment: str
) -> Federation:
    """Start `fedctl serve` and wait for its ready line."""
    return _start(directory, ["serve", *arguments], environment, is_fresh=is_fresh)


def start_on_host(directory: Path, kubeconfig: Path, *, arguments: Sequence[str] = ()) -> Federation:
    """Start `fedctl serve` on the API server of a kubeconfig, and wait for its ready line."""
    running = _start(directory, ["serve", "--host-kubeconfig", str(kubeconfig), *arguments])
    running.kubectl = Kubectl(kubeconfig)
    return running


def _start(
    directory: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    is_fresh: bool = False,
) -> Federation:
    port = [] if "--port" in arguments else ["--port", "0"]
    command = [*arguments, "--dir", str(directory), *port]
    with log_of(directory).open("a") as log:
        everything = {**os.environ, **(environment or {})}
        process = start_process(CLI, command, environment=everything, stderr=log.fileno(), is_fresh=is_fresh)
    assert process.stdout is not None
    deadline = time.monotonic() + PATIENCE_S + 60
    line = ""
    while not line.startswith("ready"):
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        line = process.stdout.readline() if readable else ""
        if not line:
            process.kill()
            process.wait(PATIENCE_S)
            process.stdout.close()
            raise AssertionError(
                f"fedctl did not become ready ({process.returncode}):\n{log_of(directory).read_text()[-3000:]}"
            )
    return Federation(directory, process, line)


@contextmanager
def federation(
    directory: Path, *, members: int = 3, arguments: Sequence[str] = (), is_fresh: bool = False, **environment: str
) -> Iterator[Federation]:
    """Run a federation with simulated members during the block."""
    with closing(
        start_federation(directory, members=members, arguments=arguments, is_fresh=is_fresh, **environment)
    ) as running:
        yield running


@contextmanager
def free_clusters(directory: Path, count: int, *, is_fresh: bool = False) -> Iterator[list[Path]]:
    """Run `count` simulated clusters outside of any federation during the block; yield their kubeconfigs."""
    arguments = ("--dir", str(directory), "--members", str(count))
    with log_of(directory).open("a") as log:
        process = start_process(SIMULATOR, arguments, stdin=subprocess.PIPE, stderr=log.fileno(), is_fresh=is_fresh)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdout:
        try:
            lines = [json.loads(process.stdout.readline()) for _ in range(count)]
            process.stdout.readline()  # ready: it takes the commands of `fedctl sim` from now on
            yield sorted(Path(line["kubeconfig"]) for line in lines)
        finally:
            close_clients(directory)
            process.stdin.close()  # which ends it
            process.wait(PATIENCE_S)


def eventually(
    look: Callable[[], T],
    accept: Callable[[T], bool],
    *,
    timeout_s: float = PATIENCE_S,
    pause_s: float = 0.1,
    what: str = "",
) -> T:
    """Return the first result of `look` that `accept` accepts; AssertionError with the last result on a timeout.

    Pauses grow with what was waited already: looks that start a process would take the CPU from what they wait for.
    """
    began = time.monotonic()
    while True:
        seen = look()
        if accept(seen):
            return seen
        waited_s = time.monotonic() - began
        if waited_s > timeout_s:
            raise AssertionError(f"{what or 'the condition'} did not hold within {timeout_s:g} s; last seen: {seen!r}")
        # Polling a real process: there is no condition to wait on.
        time.sleep(min(max(pause_s, waited_s * _PAUSE_SHARE), max(pause_s, _PAUSE_S_MAX)))
