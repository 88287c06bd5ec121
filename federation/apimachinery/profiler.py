"""A sampling profiler for a running process: CPU seconds by call stack.

The main thread is interrupted by a signal after every few milliseconds of CPU time, and adds what it used since the
last one to its current stack. For the other threads a thread does that. Waiting therefore costs nothing, and the sum is
the CPU time of the process's Python threads. The result is text in two forms: collapsed stacks, which flame graph tools
read, and a summary by entry point, package and function. A profiler lives as long as its process; `start` begins and
`stop` ends it, both in the main thread.

Time in a C function counts for its caller, or for the next function that is called in Python. A thread could look at
the main thread only where that releases the interpreter lock: an event loop would seem to spend most of its time there.
"""

import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from federation.apimachinery.errors import ConfigurationError

_Seconds = dict[str, float]
Stack = tuple[str, ...]
"""Functions as `module:name`, the outermost first."""

_NOISE_S = 20e-6
"""Less CPU time than this between two samples is a thread that woke up and waits again."""
_ROWS_MAX = 30
"""Rows of each table of a summary."""
_STACKS_MAX = 100_000
"""Distinct stacks; time of further ones is added to one named `other`."""


class Profiler:
    """Samples all threads but its own. The profile grows until the process ends."""

    def __init__(self, *, interval_s: float = 0.01) -> None:
        if not sys.platform.startswith("linux"):
            raise ConfigurationError("--profile: the CPU time of a thread can be read on Linux only")
        self._interval_s = interval_s
        self._seconds: dict[Stack, float] = {}
        self._labels: dict[CodeType, str] = {}
        self._samples = 0
        self._started_s = time.monotonic()
        self._main_s = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="profiler", daemon=True)
        self._replaced: Any = None

    def start(self) -> None:
        """Begin to sample."""
        self._main_s = time.thread_time()
        self._replaced = signal.signal(signal.SIGPROF, self._on_signal)
        signal.setitimer(signal.ITIMER_PROF, self._interval_s, self._interval_s)
        self._thread.start()

    def stop(self) -> None:
        """Sample no more; the profile stays."""
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, self._replaced)
        self._stopping.set()
        self._thread.join()

    def stacks(self) -> dict[Stack, float]:
        """Return CPU seconds by stack so far."""
        return dict(self._seconds)

    def write(self, path: Path, plumbing: Iterable[str] = ()) -> None:
        """Write the collapsed stacks so far to `path`, and their summary to the same name with `.txt` appended."""
        stacks = self.stacks()
        path.write_text(to_collapsed(stacks))
        elapsed_s = time.monotonic() - self._started_s
        to_summary_path(path).write_text(summarise(stacks, self._samples, elapsed_s, tuple(plumbing)))

    def _run(self) -> None:
        used_s: dict[int, float] = {}
        while not self._stopping.wait(self._interval_s):
            seen = (self._thread, threading.main_thread())
            threads = {each.ident: each.native_id for each in threading.enumerate() if each not in seen}
            frames = sys._current_frames()
            used_s = {
                native: self._sample(frames[ident], native, used_s.get(native))
                for ident, native in threads.items()
                if ident in frames and native is not None
            }

    def _sample(self, frame: FrameType, native_id: int, before_s: float | None) -> float:
        """Add the CPU time of a thread since `before_s` to its stack; return its CPU time so far."""
        try:
            now_s = time.clock_gettime(_clock_of(native_id))
        except OSError:  # the thread has ended
            return before_s or 0.0
        if before_s is not None and now_s - before_s > _NOISE_S:
            self._add(frame, now_s - before_s)
        return now_s

    def _on_signal(self, _: int, frame: FrameType | None) -> None:
        """Add the CPU time of the main thread, in which Python runs the handlers of signals."""
        now_s = time.thread_time()
        self._add(frame, now_s - self._main_s)
        self._main_s = now_s

    def _add(self, frame: FrameType | None, used_s: float) -> None:
        stack = self._to_stack(frame)
        if stack not in self._seconds and len(self._seconds) >= _STACKS_MAX:
            stack = ("other",)
        self._seconds[stack] = self._seconds.get(stack, 0.0) + used_s
        self._samples += 1

    def _to_stack(self, frame: FrameType | None) -> Stack:
        labels: list[str] = []
        while frame is not None:
            code = frame.f_code
            label = self._labels.get(code)
            if label is None:
                # A semicolon separates functions in a collapsed stack.
                label = f"{frame.f_globals.get('__name__', '?')}:{code.co_qualname}".replace(";", ",")
                self._labels[code] = label
            labels.append(label)
            frame = frame.f_back
        return tuple(reversed(labels))


def to_summary_path(path: Path) -> Path:
    """Return the path of the summary of a profile."""
    return path.with_name(f"{path.name}.txt")


def to_collapsed(stacks: Mapping[Stack, float]) -> str:
    """Return one line per stack, its functions joined by semicolons, and its CPU time in microseconds."""
    return "".join(f"{';'.join(stack)} {round(seconds * 1e6)}\n" for stack, seconds in sorted(stacks.items()))


def summarise(stacks: Mapping[Stack, float], samples: int, elapsed_s: float, plumbing: tuple[str, ...]) -> str:
    """Return the profile as tables: by entry point, by running package, and the functions with the most CPU time.

    An entry point is the outermost package of ours in a stack. Modules in `plumbing` run everything else and are not
    counted as one.
    """
    total_s = sum(stacks.values())
    entries: _Seconds = defaultdict(float)
    packages: _Seconds = defaultdict(float)
    own: _Seconds = defaultdict(float)
    inclusive: _Seconds = defaultdict(float)
    for stack, seconds in stacks.items():
        modules = [label.partition(":")[0] for label in stack]
        ours = (each for each in modules if each.startswith("federation") and not each.startswith(plumbing))
        entries[_to_package(next(ours, modules[-1]))] += seconds
        packages[_to_package(modules[-1])] += seconds
        own[stack[-1]] += seconds
        for label in set(stack):
            inclusive[label] += seconds
    share = total_s / elapsed_s if elapsed_s else 0.0
    lines = [f"{total_s:.2f} s of CPU in {elapsed_s:.0f} s ({share:.1%} of one core), {samples:,} samples", ""]
    for title, counted in (("entry point", entries), ("running package", packages)):
        lines += [f"{'seconds':>9} {'share':>7}  {title}"]
        lines += [f"{seconds:>9.3f} {seconds / total_s:>7.1%}  {name}" for name, seconds in _ranked(counted, total_s)]
        lines += [""]
    lines += [f"{'self':>9} {'share':>7} {'total':>9}  function"]
    for name, seconds in _ranked(own, total_s):
        lines.append(f"{seconds:>9.3f} {seconds / total_s:>7.1%} {inclusive[name]:>9.3f}  {name}")
    return "\n".join(lines) + "\n"


def _ranked(seconds: Mapping[str, float], total_s: float) -> list[tuple[str, float]]:
    """Return the names with the most seconds, without those that have hardly any."""
    ranked = sorted(seconds.items(), key=lambda entry: (-entry[1], entry[0]))[:_ROWS_MAX]
    return [(name, each_s) for name, each_s in ranked if each_s >= total_s / 500]


def _to_package(module: str) -> str:
    """Return the first three parts of a module of ours, such as federation.controllers.ttl, or the foreign library."""
    parts = module.split(".")
    return ".".join(parts[:3] if parts[0].startswith("federation") else parts[:1])


def _clock_of(native_id: int) -> int:
    """Return Linux's clock of a thread's CPU time, see clock_getcpuclockid(3).

    `time.pthread_getcpuclockid` is undefined for a thread that has ended; this clock is an OSError then.
    """
    return (~native_id << 3) | 6
