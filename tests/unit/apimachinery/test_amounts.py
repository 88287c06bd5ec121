"""Counts and amounts as people read them."""

import pytest

from federation.apimachinery.amounts import first_of, to_amount, to_count


@pytest.mark.parametrize(("number", "text"), [(0, "0 objects"), (1, "1 object"), (1.0, "1 object"), (2.0, "2 objects")])
def test_a_noun_follows_its_number(number: float, text: str) -> None:
    assert to_count(number, "object") == text


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 47_500, "47.5"),
        ("cpu", 250, "0.25"),
        ("cpu", 12_000_000, "12,000"),
        ("cpu", 0, "0"),
        ("memory", 1536 * 2**20, "1.5Gi"),
        ("memory", 206 * 10**9, "191.9Gi"),
        ("memory", 10 * 2**40, "10Ti"),
        ("memory", -(2**30), "-1Gi"),
        ("memory", 100, "100"),
        ("pods", 1200, "1200"),
        ("nvidia.com/gpu", 8, "8"),
        ("cpu", None, "-"),
    ],
)
def test_amounts_have_the_unit_of_their_resource(resource: str, value: int | None, text: str) -> None:
    assert to_amount(resource, value) == text


@pytest.mark.parametrize(
    ("most", "separator", "text"),
    [
        (3, ", ", "a, b, c"),
        (2, ", ", "a, b and 1 more"),
        (1, "; ", "a; and 2 more"),
        (9, "; ", "a; b; c"),
    ],
)
def test_a_list_ends_with_the_number_of_the_others(most: int, separator: str, text: str) -> None:
    assert first_of(["a", "b", "c"], most, separator=separator) == text
    assert first_of([], most, separator=separator) == ""
