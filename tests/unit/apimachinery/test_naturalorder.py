"""The order of names with numbers."""

from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.naturalorder import natural_key


def test_runs_of_digits_are_numbers() -> None:
    names = ["member-10", "member-2", "member", "a10b2", "a10b1", "a9", "member-02", "9", "x"]
    expected = ["9", "a9", "a10b1", "a10b2", "member", "member-02", "member-2", "member-10", "x"]
    assert sorted(names, key=natural_key) == expected


@given(st.lists(st.text(max_size=12)))
def test_any_names_have_one_order(names: list[str]) -> None:
    assert len({natural_key(name) for name in names}) == len(set(names))
