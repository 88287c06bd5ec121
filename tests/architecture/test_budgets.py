"""The recorded costs of the suite are within the budgets of its tiers, and dear tests say why they are dear."""

import pytest
from tests.support.suite.costs import RECORD, REMEDY, ROOT, Cost, Record, unexplained
from tests.support.suite.tiers import has_reason, name_of

TEST_CPU_S = 1_250
"""`make test` ends in 12 minutes on two cores."""
CHECK_CPU_S = 300
"""`make check` ends in 3 minutes, linters and types included."""
UNRECORDED_MAX = 0.05


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
    """`make record-costs` refuses tests that do not; a marker can be removed afterwards."""
    tests = Record.load().tests
    costs = {
        name: Cost(*recorded, has_reason=has_reason(item))
        for item in request.session.items
        if (recorded := tests.get(name := name_of(item)))
    }
    assert not unexplained(costs), f"{REMEDY}: {unexplained(costs)}"
