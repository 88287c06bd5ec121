"""A server in process, and a client of an administrator."""

from tests.unit.apiserver.conftest import admin, parts

__all__ = ["admin", "parts"]
