"""Print the Python interpreter that `make env` takes: the first on the PATH, or one that is clearly faster.

Some are built without the compiler's profile-guided optimisation and take half as long again for the same work; nothing
in them says so reliably, so each computes the same for some milliseconds of its own CPU time. The choice and its reason
go to standard error, in one line, unless the first interpreter is the only one.

    python3 tools/interpreter.py
"""

from __future__ import annotations  # an older Python may run this, to find a newer one

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)
"""The versions whose packages are in `constraints.txt`, and with which the tests pass."""
NAMES = ("python3", *(f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)))
FOLDERS = ("/usr/local/bin", "/usr/bin", "/opt/homebrew/bin")
MANAGED = (".pyenv/versions/*/bin/python3", ".local/share/uv/python/*/bin/python3")
"""Below the home directory: where pyenv and uv install interpreters."""
CLEARLY_FASTER = 0.9
"""Part of the first interpreter's time; less than this is more than chance."""
ROUNDS = 3
PROBE = """
import sys, time
if not {oldest} <= sys.version_info[:2] <= {newest}: sys.exit(1)
import ssl, sqlite3, venv, ensurepip
def part(values, key):
    return values.get(key, 0) + len(key) if key else 0
def work():
    began, found = time.process_time(), {{}}
    for number in range(20_000):
        key = "abcdefgh"[: number % 8]
        found[key] = part(found, key) & 0xFFFF
    return time.process_time() - began
print(min(work() for _ in range(9)), sys.version.split()[0], sys._base_executable)
"""


@dataclass(frozen=True)
class Interpreter:
    """One that can run the product."""

    path: str
    version: str
    work_s: float
    """CPU time of the same work."""


def probe(path: str) -> Interpreter | None:
    """Return what an interpreter is; None for one that is too old, too new, incomplete or no interpreter."""
    code = PROBE.format(oldest=OLDEST, newest=NEWEST)
    try:
        done = subprocess.run([path, "-I", "-c", code], capture_output=True, text=True, timeout=30, check=True)  # noqa: S603
        work_s, version, executable = done.stdout.rstrip("\n").split(" ", 2)
        return Interpreter(os.path.realpath(executable), version, float(work_s))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def candidates(path: str, home: Path) -> list[str]:
    """Return interpreters of this machine by name, the one that a shell would take first."""
    found = [
        candidate
        for names, where in (
            (NAMES, path),
            (NAMES[1:], os.pathsep.join(FOLDERS)),
            (NAMES[:1], os.pathsep.join(FOLDERS)),
        )
        for name in names
        if (candidate := shutil.which(name, path=where)) is not None
    ]
    found += sorted(str(managed) for pattern in MANAGED for managed in home.glob(pattern))
    return list(dict.fromkeys(found))


def choose(found: list[Interpreter]) -> tuple[Interpreter, str]:
    """Return the interpreter to take, and why; `found` begins with the one that a shell would take."""
    first, best = found[0], min(found, key=lambda each: each.work_s)
    if best.work_s >= first.work_s * CLEARLY_FASTER:
        return first, ""
    percent = 100 * (1 - best.work_s / first.work_s)
    return best, f"Python {best.version} ({best.path}): {percent:.0f} % faster than {first.version} ({first.path})"


def main() -> int:
    """Print the path; 1 when there is no interpreter."""
    seen: dict[str, Interpreter] = {}
    found = candidates(os.environ.get("PATH", os.defpath), Path.home())
    if len(found) > 1:
        sys.stderr.write(f"Comparing {len(found)} installed Pythons (some seconds) ...\n")
    for _ in range(ROUNDS):  # by turns, so that a busy moment of the machine meets all of them
        for path in found:
            if (new := probe(path)) is not None:
                seen[new.path] = min(seen.get(new.path, new), new, key=lambda each: each.work_s)
    if not seen:
        sys.stderr.write(f"no Python from {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]} found; install one\n")
        return 1
    chosen, reason = choose(list(seen.values()))
    if reason:
        sys.stderr.write(f"{reason}\n")
    sys.stdout.write(f"{chosen.path}\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # as a shell says it; `make` is interrupted, too
