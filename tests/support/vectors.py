"""Access to the behaviour vectors beside the checkout.

`load("planner_random")` gives the cases of `vectors/planner_random.json`. The folder is `../shared/vectors` seen from the
repository, or what FEDERATION_VECTORS names; when it is missing the whole test module is skipped and says so.

`@each_case(cases)` makes one test of a function that checks one case: thousands of collected tests and their fixtures cost
more than the cases themselves. The test runs all its cases and names each that fails. FEDERATION_CASE selects the cases
whose name contains its text. The summary of a run shows the number of executed cases.
"""

import os
from collections.abc import Callable, Mapping, Sequence
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

Case = dict[str, Any]
Check = Callable[[Case], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """The cases of one test, and the function that checks one of them."""

    check: Check
    cases: Sequence[Case]
    selected: str = SELECTED

    def run(self, record_property: Callable[[str, object], None]) -> None:
        """Check every selected case; AssertionError names all that fail, and its cause is the first failure."""
        chosen = [case for case in self.cases if self.selected in case["name"]]
        failures: list[tuple[str, BaseException]] = []
        skipped: list[str] = []
        for case in chosen:
            try:
                self.check(case)
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


def each_case(cases: Sequence[Case]) -> Callable[[Check], Callable[..., None]]:
    """Decorate the check of one case: the result is a test of all `cases`."""

    def decorate(check: Check) -> Callable[..., None]:
        batch = BATCHES[check.__module__, check.__name__] = Batch(check, cases)

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


def filled(given: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return the keys of `given` that are present and not null, with a default for the others.

    The formats treat an absent key, null and the empty value alike, as Go does, unless they say otherwise.
    """
    return defaults | {key: value for key, value in given.items() if value is not None}


def case_id(case: Case) -> str:
    """Return a readable test id."""
    return str(case["name"]).replace(" ", "_")[:80]


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:_TEXT_MAX]
