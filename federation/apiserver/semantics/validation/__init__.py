"""Validation of built-in kinds: pure functions that return causes with Kubernetes' field paths and texts.

Each module validates one family of kinds; the strategies call them. `apimachinery` validates names, labels and metadata
(`nameformats`, `objectmeta`) and formats causes (`fielderrors`).
"""
