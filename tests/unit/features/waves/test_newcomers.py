"""Clusters that get a workload during a rollout: which wave takes them."""

from datetime import UTC, datetime

import pytest

from federation.features.waves.rules.newcomers import track
from federation.planning.waves.waverecord import ClusterRecord, Observed, Phase, Record, WaveRecord
from federation.planning.waves.waverules import REMAINING, Rules, Wave

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RULES = Rules("PropagationPolicy default/web", (Wave("first", frozenset("n")), Wave(REMAINING)))
OLD = ClusterRecord("other", "v2", "v1")


@pytest.mark.parametrize(
    ("first", "phase", "expected"),
    [
        (WaveRecord("first"), Phase.PROGRESSING, "first"),
        (WaveRecord("first"), Phase.STOPPED, "first"),
        (WaveRecord("first", started_at=NOW), Phase.PROGRESSING, REMAINING),
        (WaveRecord("first", is_done=True), Phase.PROGRESSING, REMAINING),
        (WaveRecord("first"), Phase.ROLLING_BACK, ""),
    ],
)
def test_a_cluster_with_the_earlier_template_fills_an_empty_wave_that_has_not_started(
    first: WaveRecord, phase: Phase, expected: str
) -> None:
    record = Record(1, phase, {"a": OLD}, (first, WaveRecord("other")), replaced={"v2": "v1"})
    found = track(record, RULES, {"a": Observed("v2", "v1"), "n": Observed("v2", "v1")})
    assert found.clusters["n"] == ClusterRecord(expected, "v2", "v1")
    assert (REMAINING in {wave.name for wave in found.waves}) is (expected == REMAINING)


@pytest.mark.parametrize("live", [None, "v0"])
def test_a_cluster_without_the_earlier_template_is_not_tracked(live: str | None) -> None:
    record = Record(1, Phase.PROGRESSING, {"a": OLD}, (WaveRecord("first"),), replaced={"v2": "v1"})
    assert track(record, RULES, {"a": Observed("v2", "v1"), "n": Observed("v2", live)}) == record


def test_a_cluster_that_has_left_is_forgotten() -> None:
    record = Record(1, Phase.PROGRESSING, {"a": OLD, "b": OLD}, (WaveRecord("other"),))
    assert track(record, RULES, {"b": Observed("v2", "v1")}).clusters == {"b": OLD}
