"""The collector's thresholds, in a subprocess because they apply to a whole process, and shared strings."""

import os
import subprocess
import sys

from federation.apimachinery.memory import share

_PROGRAM = """
import gc
from federation.apimachinery import memory
memory.pause_collector()
assert not gc.isenabled()
memory.tune_collector()
assert gc.isenabled()
assert gc.get_threshold()[0] > 10_000
assert gc.get_freeze_count() > 0
cycle = []
cycle.append(cycle)
del cycle
assert gc.collect() > 0
"""


def test_cycles_are_still_found() -> None:
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True, timeout=60)


def test_a_shared_string_is_freed_with_its_last_user() -> None:
    text = share(f"a name of an object that ends {os.getpid()}")
    assert text == f"a name of an object that ends {os.getpid()}"
    assert sys.getrefcount(text) < 100
