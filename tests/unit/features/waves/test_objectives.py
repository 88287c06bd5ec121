"""What follows from the measured share of bad samples: nothing fails by chance, and nothing bad passes."""

import pytest

from federation.features.waves.rules.objectives import Counts, Measured, Verdict, judge, judge_all
from federation.planning.waves.waverules import Comparison, Objective

ERRORS = Objective("errors", "main", "http_requests_total", bad={"code": "5.."})
ONE_PERCENT = Counts(500, 50_000)


def measured(new: Counts, before: Counts = ONE_PERCENT, waiting: Counts = ONE_PERCENT) -> Measured:
    return Measured({"a": new}, {"a": before}, {"b": waiting})


@pytest.mark.parametrize(
    ("new", "before", "waiting", "verdict"),
    [
        (Counts(60, 6000), ONE_PERCENT, ONE_PERCENT, Verdict.HOLDS),
        (Counts(90, 6000), ONE_PERCENT, ONE_PERCENT, Verdict.HOLDS),
        (Counts(100, 6000), ONE_PERCENT, ONE_PERCENT, Verdict.UNSURE),
        (Counts(180, 6000), ONE_PERCENT, ONE_PERCENT, Verdict.FAILS),
        (Counts(15, 500), ONE_PERCENT, ONE_PERCENT, Verdict.UNSURE),
        # An outage everywhere, and a cluster that was always worse.
        (Counts(180, 6000), ONE_PERCENT, Counts(1500, 50_000), Verdict.HOLDS),
        (Counts(180, 6000), Counts(1500, 50_000), ONE_PERCENT, Verdict.HOLDS),
        # Only one of both is known.
        (Counts(180, 6000), Counts(), ONE_PERCENT, Verdict.FAILS),
        (Counts(180, 6000), ONE_PERCENT, Counts(4, 499), Verdict.FAILS),
        (Counts(180, 6000), Counts(), Counts(), Verdict.NO_DATA),
        (Counts(3, 499), ONE_PERCENT, ONE_PERCENT, Verdict.NO_DATA),
        (Counts(), ONE_PERCENT, ONE_PERCENT, Verdict.NO_DATA),
        # Nothing was bad before: a few bad ones may be chance, many are not.
        (Counts(3, 5000), Counts(0, 50_000), Counts(0, 50_000), Verdict.UNSURE),
        (Counts(40, 5000), Counts(0, 50_000), Counts(0, 50_000), Verdict.FAILS),
        (Counts(6000, 6000), ONE_PERCENT, ONE_PERCENT, Verdict.FAILS),
    ],
)
def test_a_share_is_judged_against_both_comparisons(
    new: Counts, before: Counts, waiting: Counts, verdict: Verdict
) -> None:
    assert judge(ERRORS, measured(new, before, waiting)).verdict is verdict


@pytest.mark.parametrize(
    ("bad", "burn_rate", "verdict"),
    [
        (60, 1, Verdict.HOLDS),
        (70, 1, Verdict.UNSURE),
        (180, 1, Verdict.FAILS),
        (180, 3, Verdict.HOLDS),
        (400, 3, Verdict.FAILS),
    ],
)
def test_a_target_limits_how_fast_its_budget_is_used(bad: int, burn_rate: int, verdict: Verdict) -> None:
    objective = Objective("errors", "main", target=0.99, burn_rate_max=burn_rate, compare_with=frozenset())
    assert judge(objective, Measured({"a": Counts(bad, 6000)}, {}, {})).verdict is verdict


def test_a_target_holds_beside_a_comparison() -> None:
    objective = Objective("errors", "main", target=0.99)
    worse = Counts(1500, 50_000)
    assert judge(objective, measured(Counts(180, 6000), worse, worse)).verdict is Verdict.FAILS
    only_before = Objective("errors", "main", compare_with=frozenset({Comparison.BEFORE}))
    assert judge(only_before, measured(Counts(180, 6000), ONE_PERCENT, worse)).verdict is Verdict.FAILS


def test_one_bad_cluster_of_many_fails_the_wave() -> None:
    new = {"a": Counts(180, 6000), **{f"b{index}": Counts(60, 6000) for index in range(9)}}
    found = judge(ERRORS, Measured(new, dict.fromkeys(new, ONE_PERCENT), {"z": ONE_PERCENT}))
    assert found.verdict is Verdict.FAILS
    assert found.text == (
        "errors: 3.00% of 6000 samples in a are bad; before the wave 1.00% times 1.5, in waiting clusters 1.00% times 1.5"
    )


def test_a_cluster_without_requests_does_not_hold_the_others() -> None:
    new = {"a": Counts(60, 6000), "b": Counts()}
    assert judge(ERRORS, Measured(new, {"a": ONE_PERCENT}, {})).verdict is Verdict.HOLDS


def test_the_most_important_verdict_of_all_objectives_counts() -> None:
    slow = Objective("slow", "main")
    found = judge_all(
        (ERRORS, slow), {"errors": measured(Counts(180, 6000)), "slow": Measured({}, {}, {}, "no answer")}
    )
    assert (found.verdict, found.text[:7]) == (Verdict.FAILS, "errors:")
    found = judge_all((ERRORS, slow), {"errors": measured(Counts(60, 6000)), "slow": Measured({}, {}, {}, "no answer")})
    assert (found.verdict, found.text) == (Verdict.NO_DATA, "slow: no answer")
    assert judge_all((), {}).verdict is Verdict.HOLDS
