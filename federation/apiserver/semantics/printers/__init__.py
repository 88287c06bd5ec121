"""Printer columns of each kind for `kubectl get`, as in kube-apiserver. Pure.

`printing.py` builds Tables, `catalog.py` finds the printer of a kind, `table.py` has shared columns and formats. The
other modules print one family of kinds each.
"""
