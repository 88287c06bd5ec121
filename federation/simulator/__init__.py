"""Simulated member clusters (D10): a real API server with nodes, a pod scheduler, workload controllers and a kubelet.

A member is registry + store + server, the same code as the host, plus the controllers of this package, which see only
the Kubernetes API through a client. Pure parts (`ledger`, `rollout`, `kubelet`'s statuses) choose; `controllers` act.
Read `member.py` for how one is put together and `fleet.py` for several in one process.
"""
