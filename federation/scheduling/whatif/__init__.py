"""Predict the effect of changes without applying them; the library of `fedctl plan`.

`state.py` holds the objects, `changes.py` makes hypothetical versions, `affected.py` finds the federated objects that a
change affects, `pipelinerun.py` runs one of them through its pipeline with the controllers' planners, `compute.py`
combines these steps, and `planresult.py` defines the result. Pure: the caller of `compute` calls remote plugins.
"""
