"""The databases of the store's conformance suite."""

from tests.conformance.store.conftest import database_url, durable, postgres

__all__ = ["database_url", "durable", "postgres"]
