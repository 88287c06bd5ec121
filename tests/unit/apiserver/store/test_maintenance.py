"""Where a database is, by its URL, and who else may use it meanwhile."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from federation.apiserver.store.maintenance import exclusively, file_of, reading


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


def test_no_other_program_writes_during_exclusive_use(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db", timeout=0)) as other:
        other.execute("CREATE TABLE a (n)")
        with exclusively(url), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")


def test_reading_does_not_wait_for_a_program_that_writes(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE a (n)")
        other.execute("BEGIN IMMEDIATE")
        with reading(f"sqlite:///{tmp_path}/a.db") as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM a").scalar() == 0
