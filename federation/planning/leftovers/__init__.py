"""Objects of ours that are still in members although nothing delivers them (docs/decisions/0026-leftovers.md). Pure.

`record.py` has the Leftover as a value; `strays.py` decides about managed objects that a sweep finds.
"""
