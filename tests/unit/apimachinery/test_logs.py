"""Logs on standard error, as text or JSON lines; in a subprocess, because logging is configured once."""

import json
import subprocess
import sys

import pytest

_PROGRAM = """
import structlog
from federation.apimachinery import logs, metrics
logs.configure({format!r}, {level!r})
log = structlog.get_logger("x")
log.info("member joined", cluster="east")
log.debug("details", cluster="east")
try:
    secret = "hunter2"
    raise RuntimeError("broken")
except RuntimeError:
    log.exception("task failed", task="sync")
"""


def _run(fmt: str, level: str) -> list[str]:
    program = _PROGRAM.format(format=fmt, level=level)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_json_logs_are_one_object_per_line() -> None:
    first, second = (json.loads(line) for line in _run("json", "info"))
    assert (first["event"], first["cluster"], first["level"]) == ("member joined", "east", "info")
    assert first["timestamp"].endswith("Z")
    assert "RuntimeError: broken" in second["exception"]


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_tracebacks_show_no_local_values(fmt: str) -> None:
    assert not [line for line in _run(fmt, "info") if "hunter2" in line.replace('secret = "hunter2"', "")]


def test_text_logs_name_event_and_values() -> None:
    first = _run("text", "info")[0]
    assert "member joined" in first
    assert "cluster=east" in first


def test_the_level_is_respected() -> None:
    assert any("details" in line for line in _run("text", "debug"))
    assert not any("member joined" in line for line in _run("text", "error"))
