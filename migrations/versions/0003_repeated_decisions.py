"""The number of repetitions of a decision, and the time of the last one.

Safe while the previous version runs? Yes: it does not use the new columns, and its inserts get their defaults.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("decision", sa.Column("repeats", sa.Integer, nullable=False, server_default="0"))
    op.add_column("decision", sa.Column("last_at_us", sa.BigInteger, nullable=True))
    op.execute("UPDATE federation_schema SET version = 3")


def downgrade() -> None:
    op.drop_column("decision", "last_at_us")
    op.drop_column("decision", "repeats")
    op.execute("UPDATE federation_schema SET version = 2")
