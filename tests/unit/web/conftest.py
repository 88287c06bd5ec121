"""A server in process with the web app mounted."""

from tests.unit.apiserver.conftest import admin, parts

__all__ = ["admin", "parts"]
