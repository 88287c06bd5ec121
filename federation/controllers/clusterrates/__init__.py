"""Reads the rates of clusters from an HTTP source into their labels (docs/reference/cost.md)."""
