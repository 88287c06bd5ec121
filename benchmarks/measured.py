"""Run a benchmark as a process of its own and return the JSON object on its last line."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: its results by name, its parameters and its duration."""

    results: dict[str, Any]
    parameters: dict[str, Any]
    seconds: float


class BenchmarkFailed(Exception):
    """The benchmark ended with an error, took too long, or printed no result."""


def run_benchmark(script: str, arguments: tuple[str, ...] = (), timeout_s: float = 600.0) -> Measured:
    """Run `benchmarks/SCRIPT.py`; BenchmarkFailed if it does not end with a result in time."""
    # Without bytecode files each of its processes would compile all modules, for two seconds.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, str(FOLDER / f"{script}.py"), *arguments]
    started = time.monotonic()
    try:
        ended = subprocess.run(
            command, env=environment, cwd=FOLDER.parent, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BenchmarkFailed(f"{script}.py took longer than {timeout_s:g} s") from error
    if ended.returncode:
        reason = (ended.stderr.strip() or ended.stdout.strip()).splitlines() or ["no output"]
        raise BenchmarkFailed(f"{script}.py ended with exit code {ended.returncode}: {reason[-1]}")
    try:
        line = json.loads(ended.stdout.splitlines()[-1])
        return Measured(line["results"], line["parameters"], time.monotonic() - started)
    except (IndexError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkFailed(f"{script}.py did not end with a JSON line") from error
