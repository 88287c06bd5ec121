"""Where a database is, by its URL."""

from pathlib import Path

import pytest

from federation.apiserver.store.maintenance import file_of


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:////var/lib/a.db", Path("/var/lib/a.db")),
        ("sqlite:///a.db", Path("a.db").absolute()),
        ("sqlite://", None),
        ("postgresql://user@host/a", None),
    ],
)
def test_only_sqlite_has_a_file(url: str, expected: Path | None) -> None:
    assert file_of(url) == expected
