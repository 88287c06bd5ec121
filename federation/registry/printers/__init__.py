"""How each kind looks in `kubectl get`: columns and cells, as kube-apiserver prints them. Pure.

`table.py` has the pieces, the other modules one family of kinds each, `catalog.py` finds the printer of a kind. The
entry is `registry/printing.py`.
"""
