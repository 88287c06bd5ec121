"""`fedctl get`, `describe`, `logs`, `exec` and `top`: what members have, read through the host's member proxy.

Decision: docs/decisions/0058-fedctl-reads-members-through-the-host.md
"""
