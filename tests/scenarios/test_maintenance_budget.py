"""A feature that the product does not have holds, counts and scores, and all views of decisions have it.

`tests/support/maintenance` is the feature. Nothing of the product names it: a new process has its line in the catalogue.
"""

import subprocess
import sys

import pytest
from tests.support.sources import ROOT


@pytest.mark.slow("three federations and a twin, in a new process")
def test_a_feature_that_holds_counts_and_scores_is_a_folder_and_a_line() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.support.maintenance.installed"]
    command += ["-p", "no:cacheprovider", "tests/support/maintenance/scenarios.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "...." in done.stdout
