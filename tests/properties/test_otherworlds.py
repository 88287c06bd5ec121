"""Properties of replays in other worlds: the recorded world is one of them, and no replica is lost on the way."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.properties.test_replay import CLUSTERS, PLUGINS, History, a_policy, steps

from federation.api.resources import PROPAGATION_POLICIES
from federation.features.catalogue import decision_chain
from federation.scheduling.replay.comparison import Comparison, missing_replicas
from federation.scheduling.replay.logentries import read
from federation.scheduling.replay.otherworld import Changes, Twofold, redecide_elsewhere
from federation.scheduling.replay.recorder import RecorderOptions

histories = st.lists(steps, max_size=40)
segments = st.sampled_from((0, 500, 4 << 20))


def elsewhere(past: History, changes: Changes) -> list[Twofold]:
    past.do(("take", "", 0))
    return list(redecide_elsewhere(read(past.chunks), PLUGINS, decision_chain(), changes, 0, 2**62))


@given(history=histories, segment=segments)
def test_a_world_without_changes_is_the_recorded_one(history: list[tuple[str, str, Any]], segment: int) -> None:
    past = History(RecorderOptions(segment_bytes_max=segment))
    for step in history:
        past.do(step)
    for each in elsewhere(past, Changes()):
        assert each.other == each.recorded
        assert (each.other_before, each.other_after) == (each.recorded_before, each.recorded_after)


@given(history=histories, segment=segments, without=st.sampled_from(CLUSTERS))
def test_what_a_decision_places_is_what_the_next_one_finds(
    history: list[tuple[str, str, Any]], segment: int, without: str
) -> None:
    past = History(RecorderOptions(segment_bytes_max=segment))
    past.do(("scale", "web", 3))
    for step in history:
        past.do(step)
    if all(step[:2] != ("leave", without) for step in history):
        changes = Changes(without_clusters=frozenset({without}), like={"new": CLUSTERS[CLUSTERS.index(without) - 1]})
        comparison, placed = Comparison(), dict[Any, Any]()
        for each in elsewhere(past, changes):
            comparison.add(each)
            assert each.key not in placed or placed[each.key] == each.other_before
            placed[each.key] = each.other_after
            if each.other.placements:
                assert without not in each.other_after
                assert sum(count or 0 for count in each.other_after.values()) <= each.replicas
            assert missing_replicas(each.other_after, each.replicas) >= 0
        comparison.finish(2**62)
        assert comparison.total().other.missing_minutes >= 0


def test_another_policy_places_otherwise_from_the_first_decision_on() -> None:
    past = History(RecorderOptions())
    past.do(("scale", "web", 9))
    past.do(("scale", "blog", 6))
    past.do(("scale", "web", 12))
    key = (PROPAGATION_POLICIES, "default", "divide")
    found = elsewhere(past, Changes({key: a_policy({"north": 1})}))
    assert [dict(each.other_after) for each in found] == [{"north": 9}, {"north": 6}, {"north": 12}]
    assert dict(found[0].recorded_after) == {"east": 3, "north": 3, "west": 3}
