"""Commands that run in the process of the tests."""

import pytest

from federation.apimachinery import logs


@pytest.fixture(autouse=True)
def _unchanged_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the logs as tests/conftest.py configures them: a command would do it for all later tests of this process."""
    monkeypatch.setattr(logs, "configure", lambda *_: None)
