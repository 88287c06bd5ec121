"""Query parameters."""

import pytest

from federation.apiserver.http.parameters import duration_s


@pytest.mark.parametrize(("text", "seconds"), [("30", 30), ("1m30s", 90), ("500ms", 0.5), ("1h", 3600), (".5s", 0.5)])
def test_timeouts_are_go_durations(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds
