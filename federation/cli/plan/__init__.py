"""`fedctl plan` and `fedctl apply-plan`: `command.py` has the steps, `output.py` prints; `federation/plans` plans."""
