"""No dead code: vulture finds no unused code in the product at 90 % confidence."""

import importlib.util
import subprocess
import sys

import pytest
from tests.support.sources import ROOT


@pytest.mark.slow("vulture reads the whole product")
@pytest.mark.skipif(importlib.util.find_spec("vulture") is None, reason="vulture is not installed")
def test_the_product_has_no_unused_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vulture", "--min-confidence", "90", "federation", "plugins"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
