"""Runs work in forked copies of this process, each with a limit of CPU and wall time, and yields the results."""

import contextlib
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

_MEMORY_MAX = 8 << 30
"""Bytes of address space: a loop that a mutation made endless may not take the machine's memory."""


@dataclass(slots=True)
class _Worker:
    job: Any
    pid: int
    ends_at_s: float
    answer: bytearray = field(default_factory=bytearray)


def run_forked(
    jobs: Iterable[T], work: Callable[[T], Any], *, workers: int, cpu_s: float, wall_s: float
) -> Iterator[tuple[T, Any]]:
    """Yield each job with the JSON value that `work` returns for it, None if it was killed or exceeded a limit."""
    waiting, running = iter(jobs), dict[int, _Worker]()
    while True:
        while len(running) < workers and (job := next(waiting, None)) is not None:
            pipe, pid = _fork(job, work, cpu_s)
            running[pipe] = _Worker(job, pid, time.monotonic() + wall_s)
        if not running:
            return
        ready, _, _ = select.select(list(running), [], [], 1.0)
        for pipe, worker in list(running.items()):
            chunk = os.read(pipe, 1 << 20) if pipe in ready else None
            worker.answer += chunk or b""
            if chunk == b"" or time.monotonic() > worker.ends_at_s:
                del running[pipe]
                os.close(pipe)
                _end(worker.pid)
                yield worker.job, json.loads(worker.answer) if worker.answer.endswith(b"\n") else None


def _fork(job: T, work: Callable[[T], Any], cpu_s: float) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return reader, pid
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s) + 1, int(cpu_s) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX, _MEMORY_MAX))
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        answer = json.dumps(work(job)).encode() + b"\n"
        while answer:
            answer = answer[os.write(writer, answer) :]
    finally:  # a copy of the parent must not go on in the parent's code
        os._exit(0)


def _end(pid: int) -> None:
    """Kill the worker with the processes that its tests have started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
