"""An index of everything that queries of decisions compare, and the size of each explanation.

It replaces the index of the time, which no query needs any more. In the index of objects the name comes first, so that
it is used for one object only. Rows of earlier versions have no size: the large rows need not be written again.

Safe while the previous version runs? Yes: it does not use the new column, and its queries find other indexes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_COLUMNS = ["id", "api_group", "kind", "namespace", "name", "outcome", "at_us", "explanation_bytes"]


def upgrade() -> None:
    op.add_column("decision", sa.Column("explanation_bytes", sa.Integer, nullable=True))
    op.create_index("ix_decision_filters", "decision", _COLUMNS)
    op.create_index("ix_decision_name_namespace_kind_id", "decision", ["name", "namespace", "kind", "id"])
    op.drop_index("ix_decision_kind_namespace_name_id", "decision")
    op.drop_index("ix_decision_at_us", "decision")
    op.execute("UPDATE federation_schema SET version = 5")


def downgrade() -> None:
    op.create_index("ix_decision_at_us", "decision", ["at_us"])
    op.create_index("ix_decision_kind_namespace_name_id", "decision", ["kind", "namespace", "name", "id"])
    op.drop_index("ix_decision_name_namespace_kind_id", "decision")
    op.drop_index("ix_decision_filters", "decision")
    op.drop_column("decision", "explanation_bytes")
    op.execute("UPDATE federation_schema SET version = 4")
