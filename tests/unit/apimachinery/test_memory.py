"""The collector's thresholds; in a subprocess, because they apply to a whole process."""

import subprocess
import sys

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
