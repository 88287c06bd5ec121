"""What the host's API server allows users of the federation's kinds: rules of the default roles, and admission.

`roles.py` holds RBAC options of the host, `federatedobjects.py` the admission plugin that protects the kinds which only
the control plane writes. The API server knows neither; `assembly.py` passes them to it.
"""
