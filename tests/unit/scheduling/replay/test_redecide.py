"""What a replay counts, and what it passes on of the occasion of a decision."""

import gc

from tests.properties.test_replay import PLUGINS, History

from federation.apimachinery.memory import without_collector
from federation.features.catalogue import decision_chain
from federation.scheduling.replay.logentries import Decided, Result, read
from federation.scheduling.replay.recorder import RecorderOptions
from federation.scheduling.replay.redecide import NOT_RECORDED, Redecision, Verdict, redecide

SCHEDULED = Result("Scheduled", "")


def a_redecision(again: Result | None, problem: str = "") -> Redecision:
    return Redecision(Decided(("default", "web"), 0, SCHEDULED, answers=[]), {}, again, problem)


def test_the_verdict_of_several_processes_has_all_of_their_decisions() -> None:
    different = a_redecision(Result("Scheduled", "other"))
    first, second = Verdict(), Verdict()
    first.add(a_redecision(SCHEDULED))
    for each in (different, a_redecision(None, NOT_RECORDED), a_redecision(SCHEDULED)):
        second.add(each)
    first.merge(second)
    assert (first.equal, first.different, dict(first.impossible)) == (2, [different], {NOT_RECORDED: 1})
    assert (first.decisions, dict(first.by_outcome)) == (4, {"Scheduled": 4})


def test_a_decision_because_a_plugin_is_back_is_repeated() -> None:
    history = History(RecorderOptions(objects_max=0))
    for name, is_plugin_back in (("web", False), ("blog", False), ("web", True)):
        history.scale(name, 6, is_plugin_back=is_plugin_back)
    history.do(("take", "", 0))
    found = list(redecide(read(history.chunks), PLUGINS, decision_chain(), 0, 2**62))
    assert [each.entry.is_plugin_back for each in found] == [False, False, True]
    assert [each.problem for each in found] == ["", "", ""]
    assert all(each.is_equal for each in found)


def test_a_world_is_freed_with_its_segment_without_the_garbage_collector() -> None:
    """In worlds of hundreds of clusters the collector took a twentieth of the time of a replay."""
    history = History(RecorderOptions())
    for replicas in (3, 6):
        history.scale("web", replicas)
        history.do(("take", "", 0))
        history.recorder.restart()
    gc.collect()
    with without_collector():
        verdict = history.replay()
        assert gc.collect() == 0
    assert (verdict.equal, len({chunk.segment for chunk in history.chunks})) == (2, 2)
