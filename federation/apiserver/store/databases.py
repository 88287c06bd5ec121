"""Choose the database for a URL."""

from importlib.util import find_spec

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.store.database import Database
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sqlite import SQLiteDatabase


def open_database(url: str, options: StoreOptions) -> Database:
    """Return the database at `url`, not yet connected; ConfigurationError when the URL cannot be right."""
    usage = "use sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(f"store url: it does not parse; {usage}") from error
    match parsed.get_backend_name():
        case "sqlite":
            return SQLiteDatabase(parsed, options)
        case "postgresql" | "postgres":
            if find_spec("psycopg") is None:
                raise ConfigurationError(
                    "store url: the driver for PostgreSQL is not installed; run: pip install 'federation[postgres]'"
                )
            from federation.apiserver.store.postgres import (  # noqa: PLC0415  # its driver is large
                PostgreSQLDatabase,
            )

            return PostgreSQLDatabase(parsed, options)
        case other:
            raise ConfigurationError(f"store url: {other} is not supported; {usage}")
