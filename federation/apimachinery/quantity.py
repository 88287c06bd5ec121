"""Kubernetes quantities ("250m", "1.5Gi", "1e3"), exact.

A quantity is an integer number of nano units (Kubernetes keeps no finer precision and rounds away from zero) and the
notation in which it was written, so that sums print as Kubernetes would print them. Parsing is cached, because
manifests repeat a few texts.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Self

from federation.apimachinery.textcache import cache_short

NANOS = 10**9
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
"""The range of Go's int64."""
_MILLI = 10**6
_INT64_DIGITS_MAX = 18
"""Any number of so many digits is an int64."""

_TEXT = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?\d+)|(?P<decimal>[numkMGTPE]))?",
    re.ASCII,
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_EXPONENT_MAX = 64
"""Larger exponents are rejected, because their integers would use too much memory."""
_LENGTH_MAX = 128
"""Longer texts are rejected: Python does not print integers of thousands of digits."""


class Notation(StrEnum):
    """The format in which a quantity was written and is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact amount. Sums and differences keep the left side's notation, that of the right when the left is zero."""

    nanos: int
    notation: Notation = Notation.DECIMAL_SI

    def __add__(self, other: Self) -> "Quantity":
        return Quantity(self.nanos + other.nanos, self.notation if self.nanos else other.notation)

    def __sub__(self, other: Self) -> "Quantity":
        return Quantity(self.nanos - other.nanos, self.notation if self.nanos else other.notation)

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nanos, self.notation)

    def __lt__(self, other: Self) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Self) -> bool:
        return self.nanos <= other.nanos

    def __str__(self) -> str:
        return format_quantity(self)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _away_from_zero(self.nanos, _MILLI)

    @property
    def value(self) -> int:
        """The amount in whole units, rounded away from zero."""
        return _away_from_zero(self.nanos, NANOS)


ZERO = Quantity(0)


def _away_from_zero(amount: int, unit: int) -> int:
    return -(-amount // unit) if amount >= 0 else amount // unit


def parse(value: str | float | Quantity) -> Quantity:
    """Return the quantity that a manifest's text or number means; ValueError when it is none."""
    if isinstance(value, Quantity):
        return value
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not a quantity")  # noqa: TRY004  # bad data in a manifest, not a bad call
    return _parse(value if isinstance(value, str) else repr(value))


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    match = _TEXT.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if match is None:
        raise ValueError(
            f"{text[:_LENGTH_MAX]!r} is not a quantity: a number and one of n u m k M G T P E, Ki … Ei or an exponent"
        )
    sign, digits, scale = _digits(match["number"])
    if match["binary"]:
        notation, numerator, exponent = Notation.BINARY_SI, digits * 1024 ** _BINARY[match["binary"]], 0
    elif match["exponent"]:
        notation, numerator, exponent = Notation.DECIMAL_EXPONENT, digits, int(match["exponent"])
    else:
        notation, numerator, exponent = Notation.DECIMAL_SI, digits, _DECIMAL[match["decimal"] or ""]
    if abs(exponent) > _EXPONENT_MAX:
        raise ValueError(f"{text!r} is not a quantity: its exponent is beyond {_EXPONENT_MAX}")
    return Quantity(sign * _scaled(numerator, exponent - scale + 9), notation)


def _digits(number: str) -> tuple[int, int, int]:
    """Return sign, all digits as one integer, and how many of them are behind the point."""
    sign = -1 if number.startswith("-") else 1
    whole, _, fraction = number.lstrip("+-").partition(".")
    return sign, int(whole + fraction or "0"), len(fraction)


def _scaled(numerator: int, exponent: int) -> int:
    """Return numerator·10^exponent, rounded up to an integer."""
    power: int = 10 ** abs(exponent)
    return numerator * power if exponent >= 0 else -(-numerator // power)


def to_canonical(value: Any) -> Any:
    """Return the text that Kubernetes stores for a manifest's quantity; what is none is returned as it is.

    That is the canonical text, or the given one if its digits and suffix look canonical to Go's parser: "1E3", "+1".
    """
    kind = value.__class__
    if kind is str:
        return _canonical(value)
    return _canonical(repr(value)) if kind is int or kind is float else value


def to_canonical_milli(value: Any) -> Any:
    """Return the text that Kubernetes stores for an amount of a resource, which it rounds up to thousandths."""
    kind = value.__class__
    if kind is str:
        return _canonical_milli(value)
    return _canonical_milli(repr(value)) if kind is int or kind is float else value


@cache_short(4096)
def _canonical(text: str) -> str:
    return _stored(text, 1)


@cache_short(4096)
def _canonical_milli(text: str) -> str:
    return _stored(text, _MILLI)


def _stored(text: str, unit: int) -> str:
    """Return the stored text of an amount rounded up to a number of nanos; the text itself if it is none."""
    try:
        parsed = _parse(text)
    except ValueError:
        return text
    if _is_kept(text, unit):
        return text
    canonical = format_quantity(Quantity(_away_from_zero(parsed.nanos, unit) * unit, parsed.notation))
    # The text itself, so that callers can compare identities.
    return text if canonical == text else canonical


def _is_kept(text: str, unit: int) -> bool:
    """Return True if Go keeps a valid text: an int64 whose exponent is a multiple of 3, without trailing 000."""
    match = _TEXT.fullmatch(text)
    if match is None:
        return False
    whole, _, fraction = match["number"].lstrip("+-").partition(".")
    digits = (whole.lstrip("0") or "0") + fraction
    if match["binary"]:
        power = _BINARY[match["binary"]]
        return not fraction and len(digits) + 3 * power < 15 and int(digits) % 8 != 0
    exponent = int(match["exponent"]) if match["exponent"] else _DECIMAL[match["decimal"] or ""]
    scale = exponent - len(fraction)
    least = -9 if unit == 1 else -3
    is_canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return is_canonical and scale >= least and len(digits) <= _INT64_DIGITS_MAX


def to_milli(value: str | float | Quantity) -> int:
    """Return the quantity in thousandths, rounded up; the unit of cpu."""
    if value.__class__ is str and value[-1:] == "m" and _is_plain(digits := value[:-1]):
        return int(digits)
    return parse(value).milli


def to_int_ceil(value: str | float | Quantity) -> int:
    """Return the quantity in whole units, rounded up: bytes, pods, devices."""
    if value.__class__ is str:
        if _is_plain(value):
            return int(value)
        if (power := _BINARY.get(value[-2:])) and _is_plain(digits := value[:-2]):
            return int(digits) << 10 * power
    return parse(value).value


def _is_plain(digits: str) -> bool:
    """Return whether a text has nothing but digits, as nearly all that members report: no pattern is needed."""
    return digits.isdecimal() and digits.isascii() and len(digits) <= _INT64_DIGITS_MAX


def to_int64(amount: int) -> int:
    """Return the amount, limited to the range of int64, which is that of other JSON readers."""
    return max(INT64_MIN, min(amount, INT64_MAX))


@lru_cache(maxsize=4096)
def format_quantity(quantity: Quantity) -> str:
    """Return Kubernetes' canonical text: no fraction, the largest suffix that loses nothing."""
    if quantity.nanos == 0:
        return "0"
    whole, rest = divmod(quantity.nanos, NANOS)
    if quantity.notation is Notation.BINARY_SI and not rest and abs(whole) >= 1024:
        power = 0
        while whole % 1024 == 0 and power < 6:
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY_SUFFIX.get(power, '')}"
    mantissa, exponent = quantity.nanos, -9
    while mantissa % 1000 == 0 and exponent < 18:
        mantissa, exponent = mantissa // 1000, exponent + 3
    if quantity.notation is Notation.DECIMAL_EXPONENT:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"
