"""Which connection is closed when clients do not take what was sent to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apiserver.http.unsentbytes import UnsentBytes, UnsentLimits

Counts = list[tuple[str, str, int]]
LIMITS = UnsentLimits(owner=100, total=250)


def closed_after(counts: Counts) -> tuple[list[str], UnsentBytes[str]]:
    """Return the connections that are closed, and what is left."""
    unsent = UnsentBytes[str](LIMITS, "system")
    owners: dict[str, str] = {}
    closed: list[str] = []
    for owner, connection, size in counts:
        owners[connection] = owner
        unsent.count(owner, connection, size)
        while (heaviest := unsent.excess(owner)) is not None:
            closed.append(heaviest)
            unsent.count(owners[heaviest], heaviest, 0)
    return closed, unsent


@pytest.mark.parametrize(
    ("counts", "closed"),
    [
        pytest.param([("a", "1", 1_000)], [], id="a-single-client-gets-any-list"),
        pytest.param([("a", "1", 60), ("a", "2", 40)], [], id="within-the-share"),
        pytest.param([("a", "1", 60), ("a", "2", 41)], ["1"], id="the-heaviest"),
        pytest.param([("a", "1", 60), ("a", "2", 60)], ["2"], id="the-newest-of-equals"),
        pytest.param([("a", "1", 60), ("a", "1", 0), ("a", "2", 60)], [], id="what-was-taken-does-not-count"),
        pytest.param([("a", "1", 90), ("b", "2", 90), ("a", "3", 20)], ["1"], id="another-user-does-not-pay"),
        pytest.param([("system", "1", 90), ("system", "2", 90)], [], id="the-system-has-no-share"),
        pytest.param([("a", "1", 90), ("b", "2", 91), ("c", "3", 90)], ["2"], id="the-user-with-the-most"),
        pytest.param([("system", "1", 200), ("a", "2", 10), ("b", "3", 45)], ["3"], id="the-system-is-last"),
        pytest.param([("system", "1", 200), ("system", "2", 60)], ["1"], id="the-system-has-no-more-than-all"),
        pytest.param([("system", "1", 300), ("a", "2", 10)], ["2"], id="but-its-last-connection-stays"),
    ],
)
def test_the_connection_that_is_closed(counts: Counts, closed: list[str]) -> None:
    assert closed_after(counts)[0] == closed


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", "system"]), st.sampled_from("123"), st.integers(0, 150)).map(
            lambda step: (step[0], step[0] + step[1], step[2])
        )
    )
)
def test_limits_hold_for_all_but_the_last_connection(counts: Counts) -> None:
    closed, unsent = closed_after(counts)
    assert unsent.total <= max(LIMITS.total, 150)
    assert len(closed) <= len(counts)
    for owner in ("a", "b", "c", "system"):
        for number in "123":
            unsent.count(owner, owner + number, 0)
    assert unsent.total == 0
    assert unsent.excess("a") is None
