"""Pod templates that go out in waves of clusters, as far as the spine knows them. Pure.

`waverules.py` reads the rules that policies give and divides clusters into waves. `waverecord.py` is the state of a
rollout, and `rolloutstatus.py` reads it from the status of a FederatedRollout. `features/waves` decides and writes.
"""
