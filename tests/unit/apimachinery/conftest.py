"""Certificates for the connection tests."""

from tests.unit.client.conftest import pki

__all__ = ["pki"]
