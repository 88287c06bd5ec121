"""Alembic's environment.

The control plane (federation/apiserver/store/migrate.py) passes an open connection, in a transaction that holds the
migration lock. Developers run it from the command line: `alembic -x url=sqlite:///state.db upgrade head`.
"""

from alembic import context
from sqlalchemy import Connection, create_engine

from federation.apiserver.store.schema import metadata
from federation.journal import sqljournal  # noqa: F401  # adds the journal's table to `metadata`


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


if (given := context.config.attributes.get("connection")) is not None:
    run(given)
else:
    url = context.get_x_argument(as_dictionary=True).get("url")
    if not url:
        raise SystemExit("name the database: alembic -x url=sqlite:///state.db …")
    with create_engine(url).begin() as own:
        run(own)
