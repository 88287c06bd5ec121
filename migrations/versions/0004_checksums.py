"""A checksum per row of the log, to find rows that the disk has damaged.

Safe while the previous version runs? Yes: it does not use the new column, and its rows have none and count as intact.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("store_log", sa.Column("checksum", sa.BigInteger, nullable=True))
    op.execute("UPDATE federation_schema SET version = 4")


def downgrade() -> None:
    op.drop_column("store_log", "checksum")
    op.execute("UPDATE federation_schema SET version = 3")
