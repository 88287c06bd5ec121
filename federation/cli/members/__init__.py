"""`fedctl get`, `describe`, `logs`, `exec` and `top`: what members have, read through the host's member proxy."""
