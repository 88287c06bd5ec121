"""docs/failover.md: its commands are executed one after another, and print what the page shows."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.federation import BIN, eventually, start_federation
from tests.support.sources import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
PAGE = ROOT / "docs" / "failover.md"
READS = ("kubectl get", "fedctl why", "fedctl clusters", "fedctl sim status")
"""Commands that are repeated until they print what the page shows."""


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


def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(BIN)
    commands = sessions(PAGE.read_text(encoding="utf-8"))
    start = next(index for index, (command, _) in enumerate(commands) if command.startswith("fedctl up"))

    def run(command: str) -> str:
        exports = [each for each, _ in commands if each.startswith("export ")]
        done = subprocess.run(
            ["bash", "-ec", "\n".join([*exports, command])],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr}"

    for command, _ in commands[:start]:
        for name, value in re.findall(r"(FEDERATION_\w+)=(\S+)", command):
            monkeypatch.setenv(name, value)
    directory = commands[start][0].removeprefix("fedctl up --dir ")
    federation = start_federation(tmp_path / directory)
    try:
        for command, expected in commands[start + 1 :]:
            if command.startswith("export "):
                continue
            if command.startswith(READS):
                eventually(
                    lambda command=command: run(command),  # type: ignore[misc]
                    lambda printed, expected=expected: shows(printed, expected),  # type: ignore[misc]
                    timeout_s=90,
                    what=command,
                )
            else:
                printed = run(command)
                assert shows(printed, expected), f"{command} printed: {printed}"
    finally:
        federation.close()


def test_lines_are_compared_in_order_and_without_blanks() -> None:
    assert shows("a   b\nother\nc 12s\n", ["a b", "c …"])
    assert not shows("c 12s\na b\n", ["a b", "c …"])
    assert not shows("exit code 1: a", ["a"])
