"""The recorded costs of the suite are within the budgets of its tiers, and dear tests say why they are dear."""

import pytest
from tests.support.suite.costs import RECORD, ROOT, SLOW_S, Record
from tests.support.suite.tiers import name_of

TEST_CPU_S = 1_300
"""`make test` ends in 12 minutes on two cores."""
CHECK_CPU_S = 300
"""`make check` ends in 3 minutes, linters and types included."""
UNRECORDED_MAX = 0.05
NOISE = 1.5
"""The record is of one run: the first test of a worker prepares what the others share, and load costs CPU time."""


def _modules() -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("test_*.py")
        if path.relative_to(ROOT).parts[1] != "kubernetes"
    }


def test_tests_that_need_no_real_kubernetes_are_within_their_budget() -> None:
    used = Record.load().total_cpu_s()
    assert used <= TEST_CPU_S, f"{RECORD.name}: `make test` uses {used:.0f} CPU seconds of {TEST_CPU_S}"


def test_fast_tests_are_within_their_budget() -> None:
    used = Record.load().total_cpu_s(check_only=True)
    assert used <= CHECK_CPU_S, f"{RECORD.name}: `make check` uses {used:.0f} CPU seconds of {CHECK_CPU_S}"


def test_the_record_is_of_this_suite() -> None:
    """Otherwise the budgets hold for tests that are no longer there."""
    modules, recorded = _modules(), set(Record.load().files)
    unrecorded = modules - recorded
    assert len(unrecorded) <= len(modules) * UNRECORDED_MAX, f"`make test record-costs`: {sorted(unrecorded)[:20]}"
    assert not recorded - modules, f"`make record-costs` after a run: {sorted(recorded - modules)} are gone"


def test_dear_tests_say_why(request: pytest.FixtureRequest) -> None:
    """A test over two CPU seconds has the marker `slow` with a reason, or runs at night only; what is clearly over fails."""
    dear = {test for test, (cpu_s, _) in Record.load().tests.items() if cpu_s > SLOW_S * NOISE}
    silent = [
        name
        for item in request.session.items
        if (name := name_of(item)) in dear
        and item.get_closest_marker("nightly") is None
        and not ((marker := item.get_closest_marker("slow")) and marker.args)
    ]
    assert not silent, f"mark them with @pytest.mark.slow('reason'), or make them cheaper: {silent}"
