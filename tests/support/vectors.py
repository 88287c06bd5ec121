"""Access to the behaviour vectors beside the checkout.

`load("planner_random")` gives the cases of `vectors/planner_random.json`. The folder is `../shared/vectors` seen from the
repository, or what FEDERATION_VECTORS names; when it is missing the whole test module is skipped and says so.

`@each_case(cases)` makes one test of a function that checks one case: thousands of collected tests and their fixtures cost
more than the cases themselves. The test runs all its cases and names each that fails. FEDERATION_CASE selects the cases
whose name contains its text. The summary of a run shows the number of executed cases.

Adapters are strict: a case fails if its adapter did not read a key of the input, or a key of the expectation at any
depth. Where an input describes things in a form of its own, `facts` refuses keys that the adapter does not know. So no
case passes because somebody forgot a field that the visible cases do not have.
"""

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("FEDERATION_VECTORS", ROOT.parent / "shared" / "vectors"))
SELECTED = os.environ.get("FEDERATION_CASE", "")
EXECUTED = "executed cases"
"""The property of a test's report that holds the number of its cases."""
_TEXT_MAX = 300

NOTES = frozenset({"note", "source"})
"""Keys that explain a case to readers."""
SELECTORS = frozenset({"op", "function"})
"""Keys that choose the adapter of a case; a test checks that each value has one."""

Case = dict[str, Any]
Check = Callable[[Case], None]


class Reading(dict[str, Any]):
    """A mapping of a case that records which of its keys are read.

    Iterating, comparing and copying read everything below.
    """

    def __init__(self, given: Mapping[str, Any], path: str = "", seen: set[str] | None = None, *, deep: bool = True):
        super().__init__(given)
        self.path = path
        self.seen: set[str] = set() if seen is None else seen
        if deep and seen is None:
            for key, value in given.items():
                super().__setitem__(key, _reading(value, f"{path}.{key}"))

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.seen.add(key)
        return super().get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        self.seen.add(key)
        return super().pop(key, *default)

    def __iter__(self) -> Iterator[str]:
        self.seen.update(super().keys())
        return super().__iter__()

    def keys(self) -> Any:
        self.seen.update(super().keys())
        return super().keys()

    def values(self) -> Any:
        self.seen.update(super().keys())
        return super().values()

    def items(self) -> Any:
        self.seen.update(super().keys())
        return super().items()

    def __eq__(self, other: object) -> bool:
        return bool(_plain(self) == _plain(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # as of every dict

    def __or__(self, other: Any) -> Any:
        return dict(self.items()) | dict(other)

    def __ror__(self, other: Any) -> Any:
        return dict(other) | dict(self.items())

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(_plain(self), memo)

    def unread(self) -> Iterator[str]:
        """Yield the paths of the keys below that say something and were not read.

        Beside `error: true` the zero values say nothing.
        """
        is_error = super().get("error") is True and "error" in self.seen
        for key, value in super().items():
            if value is not None and key not in NOTES | SELECTORS and (value or not is_error):
                if key in self.seen:
                    yield from _unread(value)
                else:
                    yield f"{self.path}.{key}"


def _reading(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return Reading(value, path)
    if isinstance(value, list):
        return [_reading(item, f"{path}[{place}]") for place, item in enumerate(value)]
    return value


def _unread(value: Any) -> Iterator[str]:
    if isinstance(value, Reading):
        yield from value.unread()
    elif isinstance(value, list):
        for item in value:
            yield from _unread(item)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class Batch:
    """The cases of one test, and the function that checks one of them."""

    check: Check
    cases: Sequence[Case]
    selected: str = SELECTED
    is_whole: bool = True
    """True if the check reads everything that a case says."""

    def check_strictly(self, case: Case) -> None:
        """Check a case; AssertionError names the keys that the check did not read."""
        given = Reading(case.get("input") or {}, "input", deep=False)
        expected = _reading(case.get("expected") or {}, "expected")
        self.check({**case, "input": given, "expected": expected})
        unread = [*given.unread(), *_unread(expected)]
        assert not (self.is_whole and unread), f"the adapter does not read {', '.join(unread)}"

    def run(self, record_property: Callable[[str, object], None]) -> None:
        """Check every selected case; AssertionError names all that fail, and its cause is the first failure."""
        chosen = [case for case in self.cases if self.selected in case["name"]]
        failures: list[tuple[str, BaseException]] = []
        skipped: list[str] = []
        for case in chosen:
            try:
                self.check_strictly(case)
            except pytest.skip.Exception as skip:
                skipped.append(str(skip))
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # reported with the name of its case
                failures.append((case["name"], error))
        record_property(EXECUTED, len(chosen) - len(skipped))
        if failures:
            raise AssertionError(_failure_text(failures, len(chosen))) from failures[0][1]
        if len(skipped) == len(chosen):
            pytest.skip(skipped[0] if skipped else f"no case has {self.selected!r} in its name")


BATCHES: dict[tuple[str, str], Batch] = {}
"""All batches of the imported modules by module and name."""


def each_case(cases: Sequence[Case], *, is_whole: bool = True) -> Callable[[Check], Callable[..., None]]:
    """Decorate the check of one case: the result is a test of all `cases`.

    A check that looks at a part of the cases only, beside another one, says so by `is_whole=False`.
    """

    def decorate(check: Check) -> Callable[..., None]:
        batch = BATCHES[check.__module__, check.__name__] = Batch(check, cases, is_whole=is_whole)

        # Not functools.wraps: pytest would read the signature of the check and look for a fixture `case`.
        def test(record_property: Callable[[str, object], None]) -> None:
            batch.run(record_property)

        test.__name__, test.__qualname__, test.__module__ = check.__name__, check.__qualname__, check.__module__
        test.__doc__ = check.__doc__
        return test

    return decorate


def _failure_text(failures: Sequence[tuple[str, BaseException]], total: int) -> str:
    lines = [f"{name}: {type(error).__name__}: {_first_line(error)}" for name, error in failures]
    return "\n".join([f"{len(failures)} of {total} cases fail (FEDERATION_CASE=<name> repeats one):", *lines])


def load(name: str) -> list[Case]:
    """Return the cases of one vector file; skips the calling module when the folder is missing."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        pytest.skip(
            f"behaviour vectors are missing: {path} (set FEDERATION_VECTORS to their folder)", allow_module_level=True
        )
    cases: list[Case] = orjson.loads(path.read_bytes())["cases"]
    return cases


def with_operations(cases: Sequence[Case], *values: str) -> list[Case]:
    """Return the cases whose `op` or `function` is one of the values."""
    return [case for case in cases if operation(case) in values]


def operation(case: Case) -> str:
    """Return what chooses the adapter of a case, "" when nothing does."""
    return str(case["input"].get("op") or case["input"].get("function") or "")


def filled(given: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return the keys of `given` that are present and not null, with a default for the others.

    The formats treat an absent key, null and the empty value alike, as Go does, unless they say otherwise.
    """
    if isinstance(given, Reading):
        present = {key: value for key, value in dict.items(given) if value is not None}
        return Reading(defaults | present, given.path, given.seen)
    return defaults | {key: value for key, value in given.items() if value is not None}


def facts(given: Mapping[str, Any] | None, **defaults: Any) -> dict[str, Any]:
    """Return `given` with a default for each key that is absent or null; AssertionError for a key without a default."""
    given = given or {}
    unknown = {key for key, value in given.items() if value is not None and key not in NOTES} - defaults.keys()
    assert not unknown, f"the adapter does not know {', '.join(sorted(unknown))}"
    return defaults | {key: value for key, value in given.items() if value is not None}


def case_id(case: Case) -> str:
    """Return a readable test id."""
    return str(case["name"]).replace(" ", "_")[:80]


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:_TEXT_MAX]
