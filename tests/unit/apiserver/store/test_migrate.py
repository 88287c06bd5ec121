"""The versions of a database's schema: which are read, and which are refused."""

import pytest
from sqlalchemy import create_engine

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.store.migrate import read_versions
from federation.apiserver.store.schema import SCHEMA_VERSION, schema_version


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (None, (0, 0)),
        ((3, 2), (3, 2)),
        ((SCHEMA_VERSION + 5, SCHEMA_VERSION), (SCHEMA_VERSION + 5, SCHEMA_VERSION)),
        ((SCHEMA_VERSION + 5, SCHEMA_VERSION + 1), "written by a newer version"),
        ((), "is damaged"),
        (("x", 2), "is damaged"),
        ((3, "x"), "is damaged"),
    ],
)
def test_versions_are_read_from_the_database(row: tuple[object, object] | tuple[()] | None, expected: object) -> None:
    engine = create_engine("sqlite://")
    try:
        with engine.connect() as connection:
            if row is not None:
                schema_version.create(connection)
            if row:
                connection.execute(schema_version.insert().values(id=1, version=row[0], compat=row[1]))
            if isinstance(expected, str):
                with pytest.raises(ConfigurationError, match=expected):
                    read_versions(connection, "db")
            else:
                assert read_versions(connection, "db") == expected
    finally:
        engine.dispose()
