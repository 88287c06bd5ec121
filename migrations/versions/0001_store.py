"""The store: a log of changes, the counter row, and the schema's version pair.

Safe while the previous version runs? There is none: this is the first.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "federation_schema",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("compat", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_federation_schema"),
    )
    op.create_table(
        "store_state",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("compacted", sa.BigInteger, nullable=False),
        sa.Column("purged", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_store_state"),
    )
    op.create_table(
        "store_log",
        sa.Column("revision", _ROW_NUMBER, autoincrement=False, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("type", sa.SmallInteger, nullable=False),
        sa.Column("create_revision", sa.BigInteger, nullable=False),
        sa.Column("previous_revision", sa.BigInteger, nullable=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_store_log"),
    )
    op.execute("INSERT INTO store_state (id, revision, compacted, purged) VALUES (1, 0, 0, 0)")
    op.execute("INSERT INTO federation_schema (id, version, compat) VALUES (1, 1, 1)")


def downgrade() -> None:
    op.drop_table("store_log")
    op.drop_table("store_state")
    op.drop_table("federation_schema")
