"""The quarantine is short, complete, not older than two weeks, and nothing comes back into it."""

import datetime as dt
import subprocess

import pytest
from tests.support.suite.costs import ROOT
from tests.support.suite.quarantine import DAYS_MAX, ENTRIES_MAX, Quarantined, faults, quarantined

TODAY = dt.date(2026, 3, 20)


def _versions() -> list[str]:
    """Return the file's text in each commit that changed it; none without a history."""
    path = "tests/quarantine.toml"

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout

    return [git("show", f"{commit}:{path}") for commit in git("log", "--format=%H", "--", path).split()]


def test_the_list_is_in_order() -> None:
    earlier = [entry for text in _versions() for entry in quarantined(text)]
    found = faults(quarantined(), earlier=earlier, today=dt.datetime.now(dt.UTC).date())
    assert not found, "\n".join(found)


def test_every_entry_names_an_existing_test(request: pytest.FixtureRequest) -> None:
    for entry in quarantined():
        file, _, function = entry.test.partition("::")
        assert (ROOT / file).is_file(), f"{entry.test} does not exist"
        assert function.partition("[")[0].rpartition("::")[2] in (ROOT / file).read_text(), (
            f"{entry.test} does not exist"
        )


def _an_entry(test: str = "tests/test_a.py::test_b", *, days: int = 3, reason: str = "a race", owner: str = "me"):
    return Quarantined(test, owner, reason, TODAY - dt.timedelta(days=days))


@pytest.mark.parametrize(
    ("entries", "earlier", "fault"),
    [
        pytest.param([_an_entry()], [_an_entry()], "", id="in time"),
        pytest.param([_an_entry(days=DAYS_MAX + 1)], [], "mend its cause", id="too old"),
        pytest.param([_an_entry(days=-1)], [], "future", id="in the future"),
        pytest.param([_an_entry(reason=" ")], [], "no reason", id="without a reason"),
        pytest.param([_an_entry(days=1)], [_an_entry(days=9)], "cannot begin again", id="entered again"),
        pytest.param([_an_entry(f"t{n}") for n in range(ENTRIES_MAX + 1)], [], "at most", id="too many"),
    ],
)
def test_faults_are_named(entries: list[Quarantined], earlier: list[Quarantined], fault: str) -> None:
    found = "\n".join(faults(entries, earlier=earlier, today=TODAY))
    assert fault in found if fault else not found


def test_an_incomplete_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="owner, reason and since"):
        quarantined('[[quarantined]]\ntest = "tests/test_a.py::test_b"\n')
