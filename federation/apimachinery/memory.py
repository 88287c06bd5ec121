"""Memory of long-running processes with large caches of plain JSON values: the collector, and strings that are shared.

Parsed objects are millions of small containers without cycles. With CPython's default thresholds the collector scans
them again and again while objects are parsed; that took a quarter of the control plane's CPU under load. Fewer, larger
collections find the same garbage, because nearly everything here dies by reference count. The cost is a few megabytes
that live longer.

Decision: docs/decisions/0005-collect-garbage-rarely.md
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_YOUNG_CONTAINERS = 100_000
"""Allocations between two young collections; CPython's default is 700. At most about 10 MB wait for one."""
_YOUNG_PER_MIDDLE = 20
_MIDDLE_PER_FULL = 50


def pause_collector() -> None:
    """Stop collecting until `tune_collector`, while what is allocated lives as long as the process, as modules do."""
    gc.disable()


def tune_collector() -> None:
    """Collect with the thresholds of this process, and exclude all objects that exist now from later collections.

    It may be called again, when more objects exist. Garbage that exists now is never collected: looking for it would
    delay the start.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(_YOUNG_CONTAINERS, _YOUNG_PER_MIDDLE, _MIDDLE_PER_FULL)


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect no garbage within a piece of work that leaves no cycles and ends; then as before."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _keeps_interned_strings() -> bool:
    """Return whether this interpreter never frees an interned string, as 3.12 did at first (cpython#113993)."""
    return sys.getrefcount(sys.intern(f"a string of {__name__}")) > 1 << 30


share: Callable[[str], str] = str if _keeps_interned_strings() else sys.intern
"""Return one string for all equal ones that are in use. Where that would keep it for ever, return it as it is."""
