"""Accounts: what objects may use of what is limited (docs/decisions/0230-one-ledger.md). Pure.

`accountledger.py` counts, `claim.py` is the record of an object's claim, which the delivery asks before it writes.
"""
