"""Parts that the host needs from the federation, and parts that an embedded API server has by itself.

For every host, `definitions.py` has our kinds, `roles.py` the rights of users, and `admissionplugins.py` the admission
in code; they collect those of leaf features. For an existing Kubernetes API server, `manifests.py` describes the
objects that it needs, `installation.py` writes them, and `ledclient.py` refuses writes of a process that does not lead.
`federation/existinghost.py` puts the parts together.
"""
