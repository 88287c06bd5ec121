"""Failover: how replicas leave clusters that are lost or drained, and return (docs/reference/failover.md). Pure.

`halts.py` says when nothing may leave, `tolerance.py` what may leave at all, `pace.py` how fast, and `eviction.py` what
is written. `holdout.py` keeps a flapping cluster tainted.
"""
