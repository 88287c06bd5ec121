"""How fast replicas leave: single proposals at the limits."""

import pytest

from federation.planning.failover.pace import Pace, PaceOptions


def a_pace(rate: int = 10, share: float = 0.5) -> Pace[str]:
    return Pace(PaceOptions(replicas_per_minute=rate, namespace_share=share))


@pytest.mark.parametrize(
    ("rate", "wanted", "granted"), [(10, 3, 3), (10, 9, 5), (10, 0, 0), (10, -1, 0), (0, 3, 0), (-1, 3, 0)]
)
def test_a_proposal_gets_at_most_the_share_of_its_namespace(rate: int, wanted: int, granted: int) -> None:
    assert a_pace(rate).propose("web", "shop", 0, wanted, 0.0) == granted


def test_a_grant_counts_until_it_is_taken_back_or_a_minute_has_passed() -> None:
    pace = a_pace()
    assert pace.propose("web", "shop", 0, 5, 0.0) == 5
    assert pace.propose("web", "shop", 0, 4, 0.0) == 4, "the first grant is taken back"
    assert pace.confirm("web", 0.0) == 4
    assert pace.confirm("web", 0.0) == 0
    assert pace.propose("web", "shop", 0, 3, 59.0) == 1
    assert pace.propose("web", "shop", 0, 3, 60.0) == 3


def test_a_namespace_that_waits_goes_before_later_objects_of_it() -> None:
    pace = a_pace()
    assert pace.propose("web", "shop", 0, 5, 0.0) == 5
    assert pace.propose("api", "shop", 0, 1, 0.0) == 0
    assert pace.propose("web", "shop", 0, 4, 0.0) == 0, "its grant is taken back, and the other waits longer"
    assert pace.propose("api", "shop", 0, 1, 0.0) == 1
    assert pace.propose("web", "shop", 0, 5, 0.0) == 4
    assert pace.propose("job", "other", 0, 9, 0.0) == 5
