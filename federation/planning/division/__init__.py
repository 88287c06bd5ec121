"""A cluster's share of a divided object besides its number of replicas (docs/reference/replica-division.md). Pure.

`plan.py` is the entry: it turns the scheduler's numbers into patches. `ordinals.py` keeps the ordinals of StatefulSets
apart, `jobs.py` divides the completions of Jobs.
"""
