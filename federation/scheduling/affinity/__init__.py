"""Affinity and anti-affinity between workloads (`spec.workloadAffinity`, `spec.workloadAntiAffinity`).

`rules.py` compiles the terms of a policy and applies them to an object, `index.py` knows which workloads are placed
where, `relations.py` computes what a scheduling cycle needs. Everything is pure; `controllers/schedule` feeds the
index with what `scheduling/relatedworkloads.py` makes of federated objects.
"""
