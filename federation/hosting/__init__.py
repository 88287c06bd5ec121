"""Running on an existing Kubernetes API server: what must be installed there, and what an embedded API does by itself.

`manifests.py` describes the objects that the host needs, `installation.py` writes them. `ledclient.py` refuses writes
of a process that does not lead. `federation/existinghost.py` puts the parts together.
"""
