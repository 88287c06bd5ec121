"""Preemption across clusters: replicas of lower priority give way to those that wait for room in a member.

Reference: docs/reference/preemption.md.
"""
