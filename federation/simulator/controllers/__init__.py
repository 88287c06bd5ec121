"""The controllers of a simulated member: one module per controller, beside the pure modules that decide for them.

They follow Kubernetes' own controllers in what they write, step by step where users can see the steps. `pods.py` and
`revisions.py` hold what several need. `workloads.py` of the folder above starts them all.
"""
