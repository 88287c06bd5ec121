"""Documentation pages that are executed: their `console` blocks, and the comparison of what commands print."""

import os
import re
import shlex
import subprocess
from pathlib import Path

from tests.support.federation import BIN, eventually, run_fedctl
from tests.support.sources import ROOT

_SYNTAX = set("|&;<>()$`*?[#~=%{}\n")
"""What bash would not pass on as it is, quoted or not."""


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


def section(page: str, heading: str) -> str:
    """Return the text from a heading of the second level to the next one."""
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found is not None, f"no section {heading}"
    return found[1]


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


class Shell:
    """The terminal of a reader: a folder, and the variables that the page exports."""

    def __init__(self, folder: Path, exports: list[str]) -> None:
        self.folder = folder
        self._environment = {**os.environ, "HOME": str(folder), "PATH": f"{BIN}:{os.environ['PATH']}"}
        printed = self._bash("\n".join([*exports, "env -0"])).stdout
        self._environment = dict(line.split("=", 1) for line in printed.split("\0") if line)

    def run(self, command: str) -> tuple[int, str]:
        """Run a command; return its exit code and what it prints. A plain fedctl needs no bash, and is forked."""
        if command.startswith("fedctl ") and not _SYNTAX & set(command):
            words = shlex.split(command)[1:]
            done = run_fedctl(words, environment=self._environment, folder=self.folder, timeout_s=120)
        else:
            done = self._bash(command)
        return done.returncode, done.stderr + done.stdout

    def _bash(self, command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-ec", command],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def check_command(shell: Shell, command: str, expected: list[str], reads: tuple[str, ...]) -> None:
    """Run a command of a page, and check what it prints.

    One that starts with one of `reads` is repeated until it prints that, whatever its exit code; others must succeed.
    """
    if command.startswith(reads):
        eventually(
            lambda: shell.run(command)[1],
            lambda printed: shows(printed, expected),
            pause_s=0.3,
            what=command,
        )
        return
    code, printed = shell.run(command)
    assert code == 0, f"{command} failed: {printed}"
    assert shows(printed, expected), f"{command} printed: {printed}"
