"""Revisioned objects on SQLAlchemy; watch; compaction; the journal of decisions. Read interface.py first."""
