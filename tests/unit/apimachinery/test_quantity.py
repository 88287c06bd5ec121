import pytest

from federation.apimachinery.quantity import (
    Notation,
    Quantity,
    format_quantity,
    parse,
    to_canonical,
    to_canonical_milli,
    to_int_ceil,
    to_milli,
)


@pytest.mark.parametrize(
    ("text", "milli", "whole", "canonical"),
    [
        ("250m", 250, 1, "250m"),
        ("1.5Gi", 1_610_612_736_000, 1_610_612_736, "1536Mi"),
        ("1e3", 1_000_000, 1000, "1e3"),
        ("1000", 1_000_000, 1000, "1k"),
        ("1024Ki", 1_048_576_000, 1_048_576, "1Mi"),
        ("0.5Ki", 512_000, 512, "512"),
        ("0.1Ki", 102_400, 103, "102400m"),
        ("-1.5", -1500, -2, "-1500m"),
        ("+2", 2000, 2, "2"),
        (".5", 500, 1, "500m"),
        ("5.", 5000, 5, "5"),
        ("1E", 10**21, 10**18, "1E"),
        ("12E6", 12 * 10**9, 12 * 10**6, "12e6"),
        ("1e-3", 1, 1, "1e-3"),
        ("0.0000000001", 1, 1, "1n"),
        ("100u", 1, 1, "100u"),
        ("0", 0, 0, "0"),
        ("2Ei", 2 * 1024**6 * 1000, 2 * 1024**6, "2Ei"),
    ],
)
def test_a_quantity_reads_and_prints_as_in_kubernetes(text: str, milli: int, whole: int, canonical: str) -> None:
    quantity = parse(text)
    assert (quantity.milli, quantity.value, str(quantity)) == (milli, whole, canonical)


@pytest.mark.parametrize("text", ["", "m", "1.2.3", "1 Gi", "1KI", "1gi", "abc", "1e", "--1", "1e100", "٣"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse(text)


def test_numbers_of_a_manifest_are_quantities_and_booleans_are_not() -> None:
    assert (to_milli(2), to_milli(0.5), to_int_ceil(0.5)) == (2000, 500, 1)
    with pytest.raises(ValueError, match="True"):
        parse(True)


def test_sums_keep_the_notation_of_the_left_side_unless_it_is_zero() -> None:
    assert str(parse("1Gi") + parse("512Mi")) == "1536Mi"
    assert str(parse("0") + parse("1Gi")) == "1Gi"
    assert str(parse("1Gi") - parse("512Mi")) == "512Mi"
    assert str(Quantity(0) - parse("1")) == "-1"
    assert str(-parse("2")) == "-2"


def test_quantities_compare_by_amount() -> None:
    assert parse("1Gi") > parse("1G")
    assert parse("1000m") <= parse("1")
    assert parse(parse("3")).value == 3


def test_a_binary_amount_with_a_fraction_prints_in_decimal() -> None:
    assert format_quantity(Quantity(2048 * 10**9 + 1, Notation.BINARY_SI)) == "2048000000001n"


@pytest.mark.parametrize(
    ("text", "stored", "stored_amount"),
    [
        ("1E3", "1E3", "1E3"),
        ("+1", "+1", "+1"),
        ("1.", "1.", "1."),
        ("1.500", "1.500", "1.500"),
        ("010", "010", "010"),
        ("1000", "1k", "1k"),
        ("1024Mi", "1Gi", "1Gi"),
        ("1500Mi", "1500Mi", "1500Mi"),
        ("1.5", "1500m", "1500m"),
        ("1u", "1u", "1m"),
        ("1.2345678912345", "1234567892n", "1235m"),
        ("-1.2345", "-1234500u", "-1235m"),
        ("123456789012345678901", "123456789012345678901", "123456789012345678901"),
    ],
)
def test_quantities_are_stored_as_go_stores_them(text: str, stored: str, stored_amount: str) -> None:
    assert to_canonical(text) == stored
    assert to_canonical_milli(text) == stored_amount


@pytest.mark.parametrize("digits", ["0", "7", "007", "9" * 18, "9" * 19, "+7", "-7", "1.5", "٣", "1_0", " 7", ""])
@pytest.mark.parametrize("suffix", ["", "m", "Ki", "Gi", "Ei", "i", "k", "Xi"])
def test_amounts_that_are_read_without_a_pattern_are_the_same(digits: str, suffix: str) -> None:
    text = digits + suffix
    try:
        expected = parse(text)
    except ValueError:
        for read in (to_milli, to_int_ceil):
            with pytest.raises(ValueError, match="is not a quantity"):
                read(text)
        return
    assert (to_milli(text), to_int_ceil(text)) == (expected.milli, expected.value)
