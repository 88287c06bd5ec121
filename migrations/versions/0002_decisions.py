"""The journal of decisions.

Safe while the previous version runs? Yes: it adds a table that the previous version does not use.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "decision",
        sa.Column("id", _ROW_NUMBER, sa.Identity(always=False), nullable=False),
        sa.Column("at_us", sa.BigInteger, nullable=False),
        sa.Column("api_group", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("duration_ms", sa.Float, nullable=False),
        sa.Column("explanation", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decision"),
    )
    op.create_index("ix_decision_kind_namespace_name_id", "decision", ["kind", "namespace", "name", "id"])
    op.create_index("ix_decision_at_us", "decision", ["at_us"])
    op.execute("UPDATE federation_schema SET version = 2")


def downgrade() -> None:
    op.drop_table("decision")
    op.execute("UPDATE federation_schema SET version = 1")
