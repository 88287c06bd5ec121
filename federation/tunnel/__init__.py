"""Byte streams to a cluster that accepts no connections, over one connection that its agent opened.

Decision: docs/decisions/0051-agents-carry-bytes.md
"""
