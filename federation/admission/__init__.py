"""Admission plugins for the federation's kinds, and for what users steer with other kinds.

`federatedobjects.py` protects the kinds that only the control plane writes, `policyselectors.py` limits the kinds that
a policy of a namespace selects, and `authors.py` records who wrote a wish. The API server knows none of them;
`hosting/admissionplugins.py` collects them, and those of leaf features.
"""
