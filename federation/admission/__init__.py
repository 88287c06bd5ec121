"""Permissions for the federation's kinds in the host's API server: rules of the default roles, and admission.

`roles.py` has the RBAC options of the host. There are four admission plugins: `autoscalers.py` warns
about autoscalers that do not act, `federatedobjects.py` protects the kinds
that only the control plane writes, `policyselectors.py` limits the kinds that a policy of a namespace selects, and
`typeconfigs.py` refuses FederatedTypeConfigs that cannot work. The API
server knows none of them; `assembly.py` passes them to it.
"""
