"""`fedctl plan` and `fedctl apply-plan`: compute what a change would do, print it, save it, verify it and apply it.

`command.py` has the steps in order. `manifests.py` and `requestedchanges.py` read the command line, `inventory.py`
reads the federation's objects, `edits.py` sends writes (as a dry run or for real), `output.py` prints, and
`planfile.py` defines the plan file and checks whether a plan is still valid. The result is computed in
`scheduling/whatif`.
"""
