"""Revisioned objects on SQLAlchemy; watch; compaction. Read interface.py first."""
