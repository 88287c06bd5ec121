"""Garbage collection for long-running processes that keep large caches of plain JSON values.

Caches of parsed objects are millions of small containers without cycles. CPython's default thresholds walk them again
and again while objects are parsed; that took a quarter of the control plane's CPU under load. Fewer, larger
collections find the same garbage (almost everything here dies by reference count), at the cost of a few megabytes that
live longer.
"""

import gc

_YOUNG_CONTAINERS = 100_000
"""Allocations between two young collections; the default is 700. About 10 MB at most wait for one."""
_YOUNG_PER_MIDDLE = 20
_MIDDLE_PER_FULL = 50


def tune_collector() -> None:
    """Set thresholds for this process and leave what start-up has made out of every later collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_CONTAINERS, _YOUNG_PER_MIDDLE, _MIDDLE_PER_FULL)
