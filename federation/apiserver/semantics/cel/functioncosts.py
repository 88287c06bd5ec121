"""The time, the memory and the largest result of CEL's operators and functions, for `budget.py`. Pure.

A function that is not named here counts as one of Python: its arguments and its result are converted, and its result is
as large as all arguments together. So a new function needs an entry only if its result grows more, or if it compares
its arguments with each other.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import re2

from federation.apiserver.semantics.cel.bounds import SCALAR_BYTES, Bound, join


class Done(NamedTuple):
    """The cost of one call and the bound of its result."""

    time_us: float
    made: float
    """Bytes."""
    result: Bound


_TEXT_US: Final = 0.003
"""For each byte that a function of texts reads or writes."""
_REPLACED_US: Final = 0.06
"""For each byte of functions that split or replace."""
_COMPARED_US: Final = 0.005
_CONVERTED_US: Final = 0.5
"""For each value that becomes one of Python."""
_CONVERTED_BYTES_US: Final = 0.001
_KNOWN_SUMS_MAX: Final = 16
_KNOWN_BYTES_MAX: Final = 4096
_CALLED_US: Final = 8.0
_AUTHORIZED_US: Final = 150.0
_PATTERN_US, _INSTRUCTION_US = 4.0, 0.5
"""To compile a regular expression, and for each of its instructions; the runtime compiles it at each call."""
_MATCH_US, _MATCHED_INSTRUCTION_US = 0.005, 0.015
"""For each byte of a text, and each byte and instruction: RE2 visits all of them when a pattern has many states."""
_INSTRUCTIONS_PER_BYTE: Final = 4
_INSTRUCTIONS_PER_BYTE_MAX: Final = 1000
"""`(a{1000})` has nine bytes."""
_INSTRUCTIONS_MAX: Final = 100_000
_PATTERN_BYTES_MAX: Final = 4096
_RE2_OPTIONS: Final = re2.Options()
_RE2_OPTIONS.log_errors = False
_RE2_OPTIONS.max_mem = 128 * 1024  # a larger program exceeds the limits anyway, and would take long to compile here
_NUMBER: Final = Bound(32)
_PASSING: Final = frozenset({"_?_:_", "value", "or", "orValue", "optional.of", "optional.ofNonZeroValue", "dyn"})
_CHEAP: Final = frozenset(
    {"_&&_", "_||_", "!_", "-_", "_-_", "_*_", "_/_", "_%_", "size", "int", "uint", "double", "bool", "type"}
    | {"@not_strictly_false", "hasValue", "optional.none", "duration", "timestamp", "startsWith", "endsWith"}
)
_SHRINKING: Final = frozenset({"substring", "trim", "lowerAscii", "upperAscii", "charAt", "reverse", "bytes"})
_SEARCHES: Final = frozenset({"contains", "indexOf", "lastIndexOf"})
_COMPARISONS: Final = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_SET_FUNCTIONS: Final = frozenset({"sets.contains", "sets.intersects", "sets.equivalent"})


def apply_function(name: str, given: Sequence[Bound]) -> Done:
    """Return the cost of a call; `given` are the bounds of the target, if there is one, and of the arguments."""
    if name in _CHEAP:
        longest = given[-1].size if name in ("startsWith", "endsWith") else 0
        return Done(longest * _TEXT_US, SCALAR_BYTES, _NUMBER)
    if name in _PASSING:
        return Done(0.1, SCALAR_BYTES, join(given[1:] if name == "_?_:_" else given))
    if name in _COMPARISONS:
        return Done(min(bound.size for bound in given) * _COMPARED_US, 0, _NUMBER)
    if name in ("_[_]", "_[?_]", "_?._"):
        return Done(0.1, SCALAR_BYTES, _indexed(*given))
    if name in _SHRINKING:
        return Done(given[0].size * _TEXT_US, 4 * given[0].size, Bound(given[0].size))
    if name in _SEARCHES:
        return Done(_search_us(*given[:2]), 0, _NUMBER)
    if name in _SET_FUNCTIONS:
        return _compare_all(*given)
    return _RULES.get(name, _call)(given)


def _indexed(target: Bound, key: Bound) -> Bound:
    if key.values is not None and len(key.values) == 1 and isinstance(key.values[0], (str, int)):
        return target.at(key.values[0])
    return target.items() if target.count else target


def _search_us(target: Bound, wanted: Bound) -> float:
    if target.count:
        # indexOf() of a list is a function of Python.
        smaller = min(wanted.size, target.items().size)
        return _call([target, wanted]).time_us + target.count * (0.2 + smaller * _COMPARED_US)
    # A search compares again after each partial match.
    return target.size * _TEXT_US * (1 + wanted.size / 200)


def _compare_all(left: Bound, right: Bound) -> Done:
    pairs = max(1, left.count) * max(1, right.count)
    smaller = min(left.items().size, right.items().size)
    converted = _call([left, right])
    return Done(converted.time_us + 2 * pairs * (0.1 + smaller * _COMPARED_US), converted.made, _NUMBER)


def _add(given: Sequence[Bound]) -> Done:
    left, right = given
    if (known := _known_sum(left, right)) is not None:
        return Done(known.size * _TEXT_US, known.size, known)
    is_assumed = left.is_assumed or right.is_assumed
    if not left.count and not right.count:
        size = left.size + right.size
        return Done(size * _TEXT_US, size, Bound(size, is_assumed=is_assumed))
    count = left.count + right.count
    items = join([bound.items() for bound in given if bound.count])
    # Data of unknown type may be texts as well.
    made = 16 * count + (left.size + right.size if any(bound.is_anything for bound in given) else 0)
    result = Bound(left.size + right.size, count, items, is_assumed=is_assumed)
    return Done(count * 0.05 + made * _TEXT_US, made, result)


def _known_sum(left: Bound, right: Bound) -> Bound | None:
    """Return the sums of known texts, None if there are too many; a pattern that is made of them stays known."""
    if not left.values or not right.values or len(left.values) * len(right.values) > _KNOWN_SUMS_MAX:
        return None
    if not _are_texts(left) or not _are_texts(right) or left.size + right.size > _KNOWN_BYTES_MAX:
        return None
    return Bound.of(tuple(first + second for first in left.values for second in right.values))


def _in(given: Sequence[Bound]) -> Done:
    wanted, container = given
    smaller = min(wanted.size, container.items().size)
    return Done(container.count * (0.1 + smaller * _COMPARED_US), 0, _NUMBER)


def _matches(given: Sequence[Bound]) -> Done:
    target, pattern = given[:2]
    instructions = _instructions(pattern)
    compiled_us = _PATTERN_US + instructions * _INSTRUCTION_US
    return Done(compiled_us + target.size * (_MATCH_US + instructions * _MATCHED_INSTRUCTION_US), 0, _NUMBER)


def _find(given: Sequence[Bound]) -> Done:
    called, size = _call(given), given[0].size
    pieces = Bound(size + SCALAR_BYTES * (size + 1), size + 1, Bound(size))
    return Done(called.time_us + _matches(given).time_us + pieces.cells * _CONVERTED_US, 8 * pieces.size, pieces)


def _instructions(pattern: Bound) -> float:
    if pattern.values is None or len(pattern.values) > _KNOWN_SUMS_MAX:
        each = _INSTRUCTIONS_PER_BYTE if pattern.is_assumed else _INSTRUCTIONS_PER_BYTE_MAX
        return min(pattern.size * each, _INSTRUCTIONS_MAX)
    return max((_program_size(value) for value in pattern.values if isinstance(value, str)), default=1)


@lru_cache(256)
def _program_size(pattern: str) -> int:
    if len(pattern) > _PATTERN_BYTES_MAX:
        return _INSTRUCTIONS_MAX
    try:
        return int(re2.compile(pattern, _RE2_OPTIONS).programsize)
    except re2.error as error:
        # The message is bytes.
        return _INSTRUCTIONS_MAX if b"too large" in error.args[0] else 1


def _split(given: Sequence[Bound]) -> Done:
    size = given[0].size
    pieces = Bound(size + SCALAR_BYTES * (size + 1), size + 1, Bound(size))
    return Done(size * _REPLACED_US, 4 * pieces.size, pieces)


def _replace(given: Sequence[Bound]) -> Done:
    target, old, new = given[:3]
    # An empty text is found before each letter and at the end. A result shorter than the target still reads it.
    shortest = 1
    if old.values:
        shortest = max(1, min(len(value) for value in old.values if isinstance(value, str))) if _are_texts(old) else 1
    size = target.size + (target.size / shortest + 1) * new.size
    return Done(size * _REPLACED_US, size, Bound(size))


def _are_texts(bound: Bound) -> bool:
    return all(isinstance(value, str) for value in bound.values or ())


def _join(given: Sequence[Bound]) -> Done:
    listed = given[0]
    separator = given[1].size if len(given) > 1 else 0
    size = listed.count * (listed.items().size + separator)
    return Done(size * _TEXT_US + listed.count * 0.1, size, Bound(size))


def _format(given: Sequence[Bound]) -> Done:
    text, listed = given[:2]
    # An argument is used once. The longest forms are hexadecimal texts and numbers of a thousand digits.
    size = text.size + 4 * listed.size + (1024 * listed.count if _has_precision(text) else 64 * listed.count)
    return Done(size * _REPLACED_US, 2 * size, Bound(size))


def _has_precision(text: Bound) -> bool:
    return text.values is None or any(isinstance(value, str) and "." in value for value in text.values)


def _quote(given: Sequence[Bound]) -> Done:
    size = 6 * given[0].size
    return Done(size * _TEXT_US, size, Bound(size))


def _to_text(given: Sequence[Bound]) -> Done:
    size = given[0].size + 32
    return Done(size * _TEXT_US, size, Bound(size))


def _aggregate(given: Sequence[Bound]) -> Done:
    called = _call(given)
    return Done(called.time_us, called.made, given[0].items() if given[0].count else given[0])


def _check(given: Sequence[Bound]) -> Done:
    called = _call(given)
    return Done(called.time_us + _AUTHORIZED_US, called.made, called.result)


def _call(given: Sequence[Bound]) -> Done:
    """Return the cost of a function in Python."""
    size = sum(bound.size for bound in given) + 64
    count = max((bound.count for bound in given), default=0)
    us = _CALLED_US + sum(bound.cells * _CONVERTED_US + bound.size * _CONVERTED_BYTES_US for bound in given)
    return Done(2 * us, 4 * size, Bound(size, count))


_RULES: Final[dict[str, Callable[[Sequence[Bound]], Done]]] = {
    "_+_": _add,
    "@in": _in,
    "matches": _matches,
    "find": _find,
    "findAll": _find,
    "split": _split,
    "replace": _replace,
    "join": _join,
    "format": _format,
    "strings.quote": _quote,
    "base64.encode": _quote,
    "string": _to_text,
    "min": _aggregate,
    "max": _aggregate,
    "math.greatest": _aggregate,
    "math.least": _aggregate,
    "check": _check,
    "getQuery": _split,
}
