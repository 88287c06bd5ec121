"""What decisions depended on, so that they can be replayed.

Safe while the previous version runs? Yes: it adds a table that the previous version does not use.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "decision_inputs",
        sa.Column("id", _ROW_NUMBER, sa.Identity(always=False), nullable=False),
        sa.Column("segment", sa.BigInteger, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("first_us", sa.BigInteger, nullable=False),
        sa.Column("last_us", sa.BigInteger, nullable=False),
        sa.Column("decisions", sa.Integer, nullable=False),
        sa.Column("content_bytes", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decision_inputs"),
    )
    op.create_index("ix_decision_inputs_segment", "decision_inputs", ["segment", "number", "last_us", "content_bytes"])
    op.execute("UPDATE federation_schema SET version = 6")


def downgrade() -> None:
    op.drop_table("decision_inputs")
    op.execute("UPDATE federation_schema SET version = 5")
