"""Choose the database for a URL."""

from importlib.util import find_spec

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.store.database import Database
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sqlite import SQLiteDatabase

_USAGE = "use sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"


def parsed_url(url: str) -> URL:
    """Return the parts of a database's URL; ConfigurationError if it does not parse, which quotes nothing of it."""
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        # The cause quotes what stands where a port should be: the password, if the host is missing.
        raise ConfigurationError(f"store url: it does not parse; {_USAGE}") from None


def open_database(url: str, options: StoreOptions) -> Database:
    """Return the database at `url`, not yet connected; ConfigurationError when the URL cannot be right."""
    parsed = parsed_url(url)
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
            raise ConfigurationError(f"store url: {other} is not supported; {_USAGE}")
