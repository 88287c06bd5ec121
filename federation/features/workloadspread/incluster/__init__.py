"""WorkloadSpread inside one cluster: the admission of its pods, and the controller (docs/reference/workloadspread.md).

`service.py` puts the parts together over a client of the cluster. `rules/` beside this folder decides.
"""
