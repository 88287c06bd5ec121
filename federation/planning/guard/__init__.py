"""The guard: how many objects one policy, type or cluster may move at a time (docs/reference/guard.md). Pure.

`losses.py` says what a decision takes away, `ledger.py` counts it, `record.py` is its form in annotations.
"""
