"""Freezes: which changes wait for the end of a window (docs/reference/freezes.md). Pure."""
