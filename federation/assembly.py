"""Placeholder docstring until wired."""
