"""Changes of policies in waves of objects: `controller.py` watches, `reconcile.py` acts, `objectlook.py` reads caches.

`features/waves/rules/changeplan.py` decides. The scheduler and the override controller see the record in the status of
the policy (`planning/waves/policychanges.py`).
"""
