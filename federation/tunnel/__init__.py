"""Byte streams to a cluster that accepts no connections, over one connection that its agent opened."""
