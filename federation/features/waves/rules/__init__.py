"""Decide which clusters of a rollout get the new pod template now, and report it (docs/reference/rollout.md). Pure.

`waveplan.py` decides, `newcomers.py` knows clusters that join later, and `report.py` writes the status of the
FederatedRollout. The rules of policies and the recorded state are in `planning/waves`, because the spine reads them.
"""
