"""The behaviour of each kind: subclasses of `base.Strategy`, as kube-apiserver's registry strategies.

A strategy is pure and has no state: it fills defaults, resets fields that clients may not set, and validates. The verbs
call it (`verbs/preparation.py`, `verbs/deletes.py`). `kinds/builtin.py` assigns the strategies to kinds.
"""
