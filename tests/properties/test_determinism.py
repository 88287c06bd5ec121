"""Same clusters, unit, policy and profile: the same decision, and the same explanation to the byte.

Also in another process, whose sets and dictionaries of strings have another order, and after a restart, when everything
arrives in another order.
"""

import os
import subprocess
import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.determinism import decisions, digests
from tests.support.generated import examples
from tests.support.sources import ROOT

_EXPECTED = decisions(0)


def test_the_cases_are_of_every_sort() -> None:
    outcomes = {orjson.loads(value.split(b"\n")[0])["outcome"] for value in _EXPECTED.values()}
    assert {"Scheduled", "NoFeasibleCluster"} <= outcomes
    assert len(set(_EXPECTED.values())) == len(_EXPECTED)


@examples(8)
@given(st.integers(1, 10**6))
def test_the_order_in_which_things_arrive_after_a_restart_does_not_matter(seed: int) -> None:
    found = decisions(seed)
    assert {case for case, value in found.items() if value != _EXPECTED[case]} == set()


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_another_process_decides_and_explains_the_same(hash_seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.determinism", hash_seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = orjson.loads(done.stdout)
    expected = digests(0)
    assert {case for case in expected if found.get(case) != expected[case]} == set()
