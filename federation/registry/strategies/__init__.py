"""What differs from kind to kind: one small class per behaviour, on top of `base.Strategy`.

A strategy is pure and has no state: it fills defaults, drops what a client may not set, and lists causes. The verbs
(`registry/writes.py`, `registry/deletes.py`) call it. Which kind has which strategy stands in `registry/builtin.py`.
"""
