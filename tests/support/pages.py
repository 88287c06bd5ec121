"""Documentation pages that are executed: their `console` blocks, and the comparison of what commands print."""

import os
import re
import subprocess
from pathlib import Path

from tests.support.federation import BIN, eventually
from tests.support.sources import ROOT


def sessions(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a page with the lines that they print."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def shows(printed: str, expected: list[str]) -> bool:
    """Return whether all expected lines are printed, in order; … stands for anything, blanks do not count."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    patterns = [re.escape(" ".join(line.split())).replace("…", ".*") for line in expected]
    return all(any(re.fullmatch(pattern, line) for line in lines) for pattern in patterns)


def prepare(folder: Path) -> None:
    """Make what pages use of a checkout available in the folder."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(BIN)


def run_in(folder: Path, command: str, exports: list[str]) -> tuple[int, str]:
    """Run a command of a page after its exports; return its exit code and what it prints."""
    done = subprocess.run(
        ["bash", "-ec", "\n".join([*exports, command])],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr + done.stdout


def check_command(folder: Path, command: str, expected: list[str], exports: list[str], reads: tuple[str, ...]) -> None:
    """Run a command of a page, and check what it prints.

    One that starts with one of `reads` is repeated until it prints that, whatever its exit code; others must succeed.
    """
    if command.startswith(reads):
        eventually(
            lambda: run_in(folder, command, exports)[1],
            lambda printed: shows(printed, expected),
            timeout_s=90,
            what=command,
        )
        return
    code, printed = run_in(folder, command, exports)
    assert code == 0, f"{command} failed: {printed}"
    assert shows(printed, expected), f"{command} printed: {printed}"
