"""The compaction target: by age on a virtual clock, and by number of changes."""

from pathlib import Path

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apiserver.store.compaction import Compactor
from federation.apiserver.store.databases import open_database
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.quota import SpaceQuota
from federation.apiserver.store.watchcache import WatchCache


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def a_compactor(tmp_path: Path, clock: ManualClock, **fields: float) -> Compactor:
    options = StoreOptions(**fields)  # type: ignore[arg-type]  # fields by name
    database = open_database(f"sqlite:///{tmp_path}/state.db", options)
    return Compactor(database, WatchCache(options, 10, 10), options, clock, SpaceQuota(database, options))


def test_only_changes_past_the_age_limit_are_compacted(tmp_path: Path, clock: ManualClock) -> None:
    compactor = a_compactor(tmp_path, clock, history_age_s_max=600)
    for at_s, revision in ((0, 100), (300, 200), (600, 300)):
        compactor._checkpoints.append((at_s, revision))
    compactor._watch_cache.cache.revision = 400
    assert compactor.compaction_target(599) == 400 - 50_000
    assert compactor.compaction_target(601) == 100
    assert compactor.compaction_target(1199) == 200
    assert compactor.compaction_target(1500) == 300


def test_only_the_newest_changes_are_kept_in_memory(tmp_path: Path, clock: ManualClock) -> None:
    compactor = a_compactor(tmp_path, clock, history_rows_max=1000)
    compactor._watch_cache.cache.revision = 5000
    assert compactor.compaction_target(0) == 4000
