"""How Alembic reaches the database.

The control plane calls it with an open connection inside one transaction (federation/store/migrate.py), which holds
the migration lock and the timeouts. From the command line it is for developers: `alembic -x url=sqlite:///state.db
upgrade head`.
"""

from alembic import context
from sqlalchemy import Connection, create_engine

from federation.store.schema import metadata


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
