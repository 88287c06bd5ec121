"""Leftovers: objects of ours in members that nothing delivers (docs/decisions/0026-leftovers.md).

`controller.py` watches, `reconcile.py` acts on one record, `sweep.py` looks for objects without one.
"""
