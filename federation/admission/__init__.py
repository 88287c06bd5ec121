"""What the host's API server allows users of the federation's kinds: rules of the default roles, and admission.

`roles.py` holds RBAC options of the host. Two admission plugins: `federatedobjects.py` protects the kinds which only
the control plane writes, `policyselectors.py` limits the kinds that a policy of a namespace selects. The API server
knows none of them; `assembly.py` passes them to it.
"""
