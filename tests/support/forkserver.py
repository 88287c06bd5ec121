"""Processes of ours that start in milliseconds: they are forked from one that has imported the product.

Most of the CPU time of a start is imports.
`start_process(module, arguments, …)` calls the module's `main` in a process like that of `python -m module arguments`: with descriptors, environment,
folder and arguments of its own, and an end like Python's: handlers at exit, exit codes, a traceback. The server runs while
the process that uses it does, has one thread, and imports only.

What the imports themselves do is not seen here: tests of it (wheel, imports, memory) start interpreters.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeAlias

_MESSAGE_BYTES_MAX = 200_000
_READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_", "COVERAGE")
"""Prefixes of variables that an interpreter reads when it starts."""


class ForkedProcess:
    """A running process with the methods of `subprocess.Popen`."""

    def __init__(
        self, arguments: Sequence[str], pid: int, status: int, stdin: IO[str] | None, stdout: IO[str] | None
    ) -> None:
        self.args = arguments
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the process runs."""
        return self._wait_s(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; subprocess.TimeoutExpired if there is none in time."""
        code = self._wait_s(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait_s(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            code = os.read(self._status, 16)
            os.close(self._status)
            self.returncode = int(code) if code else -signal.SIGKILL  # the server itself was killed
        return self.returncode


Process: TypeAlias = "ForkedProcess | subprocess.Popen[str]"


def start_process(
    module: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.PIPE,
    stderr: int,
    folder: Path | None = None,
    is_fresh: bool = False,
) -> Process:
    """Run the module's `main` in a new process, whose standard input is empty by default.

    An interpreter of its own is started with `is_fresh`, and for an environment that interpreters read at their start.
    """
    environment = dict(os.environ if environment is None else environment)
    if is_fresh or _at_start(environment) != _at_start(os.environ):
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=environment,
            cwd=folder,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
        )
    with contextlib.ExitStack() as opened:
        writing = reading = None
        if stdin == subprocess.DEVNULL:
            stdin = os.open(os.devnull, os.O_RDONLY)
            opened.callback(os.close, stdin)
        elif stdin == subprocess.PIPE:
            stdin, write = os.pipe()
            writing = os.fdopen(write, "w")
            opened.callback(os.close, stdin)
        if stdout == subprocess.PIPE:
            read, stdout = os.pipe()
            reading = os.fdopen(read)
            opened.callback(os.close, stdout)
        status, reported = os.pipe()
        opened.callback(os.close, reported)
        request = {
            "module": module,
            "arguments": [*arguments],
            "environment": environment,
            "folder": str(folder or Path.cwd()),
        }
        pid = _server().request(request, [stdin, stdout, stderr, reported])
    return ForkedProcess([module, *arguments], pid, status, writing, reading)


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


class _Server:
    """This process's end of the server."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        atexit.register(self._close)

    def request(self, request: Mapping[str, object], descriptors: list[int]) -> int:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
            return int(self._socket.recv(16))

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()


@functools.cache
def _server() -> _Server:
    return _Server()


def _serve(control: socket.socket) -> dict[str, object] | None:
    """Fork for each request; return the request in the child, and None at the end of the one who asks."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([control.fileno(), woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            _report_ended(running)
        if control.fileno() not in readable:
            continue
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES_MAX, 4)
        if not message:
            return None
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for descriptor in (control.detach(), woken, waking, descriptors[3], *running.values()):
                os.close(descriptor)
            return _become(json.loads(message), descriptors[:3])
        running[pid] = descriptors[3]
        for descriptor in descriptors[:3]:
            os.close(descriptor)
        control.send(str(pid).encode())


def _report_ended(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        descriptor = running.pop(pid)
        with contextlib.suppress(BrokenPipeError):
            os.write(descriptor, str(os.waitstatus_to_exitcode(status)).encode())
        os.close(descriptor)


def _become(request: dict[str, object], descriptors: list[int]) -> dict[str, object]:
    """Give a child what a new process has of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    environment, arguments = request["environment"], request["arguments"]
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(str(request["folder"]))
    time.tzset()
    sys.argv = [str(request["module"]), *arguments]
    return request


def _import_everything() -> None:
    for root in (importlib.import_module("federation"), importlib.import_module("federation_plugins")):
        for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            importlib.import_module(found.name)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, (
        "an import has started a thread, so that forks are not safe"
    )


def _main() -> None:
    sys.path.append(str(Path(__file__).parents[2]))  # for servers of the tests themselves
    _import_everything()
    gc.collect()
    gc.freeze()  # a collection in a child would copy all of it
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is None:
        os._exit(0)  # there is nothing to finish, and freeing what was imported takes long
    _run(importlib.import_module(str(request["module"])).main)


def _run(main: Callable[[], object]) -> None:
    """Call a `main` and end the process, without freeing what was imported: that takes longer than most commands.

    Threads, handlers at exit and buffers come to their end as usual. Errors are left to Python.
    """
    code = 0
    try:
        main()
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        code = end.code or 0
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    _main()
