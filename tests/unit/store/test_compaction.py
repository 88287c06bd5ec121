"""How far to forget: by age on a clock that the test moves, by number of changes."""

from pathlib import Path

import pytest

from federation.base.clock import ManualClock
from federation.store.compaction import Compactor
from federation.store.database import open_database
from federation.store.options import StoreOptions
from federation.store.view import View


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def a_compactor(tmp_path: Path, clock: ManualClock, **fields: float) -> Compactor:
    options = StoreOptions(**fields)  # type: ignore[arg-type]  # fields by name
    return Compactor(open_database(f"sqlite:///{tmp_path}/state.db", options), View(options, 10, 10), options, clock)


def test_only_what_is_older_than_the_age_is_forgotten(tmp_path: Path, clock: ManualClock) -> None:
    compactor = a_compactor(tmp_path, clock, history_age_s_max=600)
    for at_s, revision in ((0, 100), (300, 200), (600, 300)):
        compactor._checkpoints.append((at_s, revision))
    compactor._view.cache.revision = 400
    assert compactor.plan_target(599) == 400 - 50_000
    assert compactor.plan_target(601) == 100
    assert compactor.plan_target(1199) == 200
    assert compactor.plan_target(1500) == 300


def test_only_the_newest_changes_are_kept(tmp_path: Path, clock: ManualClock) -> None:
    compactor = a_compactor(tmp_path, clock, history_rows_max=1000)
    compactor._view.cache.revision = 5000
    assert compactor.plan_target(0) == 4000
