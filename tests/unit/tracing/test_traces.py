"""Traces are optional: their packages, and the collector."""

import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError
from federation.tracing.traces import Traces, to_url


def test_nothing_is_imported_without_an_endpoint() -> None:
    code = "import federation.assembly, sys; print([name for name in sys.modules if 'opentelemetry.sdk' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_missing_packages_are_named_with_the_remedy(tmp_path: Path) -> None:
    line = ["fedctl", "serve", "--dir", str(tmp_path), "--otlp-endpoint", "http://127.0.0.1:9"]
    code = f"import sys; sys.modules['opentelemetry.sdk'] = None; sys.argv = {line}; from federation.cli import entry; entry.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr == (
        "fedctl: otlp-endpoint: traces need packages that are not installed (opentelemetry.sdk.resources): "
        "pip install 'federation[otel]'\n"
    )


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://collector:4318/", "http://collector:4318/v1/traces"),
        ("https://collector/otlp", "https://collector/otlp/v1/traces"),
        ("http://collector:4318/v1/traces", "http://collector:4318/v1/traces"),
    ],
)
def test_an_endpoint_may_have_the_path_of_traces(endpoint: str, url: str) -> None:
    assert to_url(endpoint) == url


def test_an_endpoint_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="otlp-endpoint: 'collector:4318' is not an http:// or https:// URL"):
        to_url("collector:4318")


async def test_a_collector_that_does_not_answer_is_logged_once_and_delays_the_end_shortly() -> None:
    with capture_logs() as logs:
        traces = Traces("http://127.0.0.1:9", SystemClock(), "1.0")
        app = traces.wrap(_answer)
        scope = {"type": "http", "method": "POST", "path": "/api/v1/namespaces", "headers": []}
        for _ in range(2):
            await app(scope, None, _ignore)  # type: ignore[arg-type]  # the app receives nothing
        clock = SystemClock()
        before_s = clock.monotonic()
        await traces.close()
        assert clock.monotonic() - before_s < 10
    (line,) = logs
    assert line["event"] == "traces cannot be sent and are lost"
    assert "Connection refused" in line["error"]


async def _answer(scope: object, receive: object, send: object) -> None:
    pass


async def _ignore(message: object) -> None:
    pass
