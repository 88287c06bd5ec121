"""Simulated member clusters: a real API server with nodes, a pod scheduler, workload controllers and a kubelet.

A member is registry, store and server, the same code as the host, plus the controllers of this package, which use the
Kubernetes API through a client. Read `member.py` for one member, `workloads.py` for its controllers (in `controllers/`)
and `fleet.py` for several members, each in its own process.
"""
