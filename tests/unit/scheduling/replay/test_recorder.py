"""Where the log of decisions begins a new segment."""

import pytest
from tests.properties.test_replay import History

from federation.scheduling.replay.recorder import RecorderOptions


@pytest.mark.parametrize(("more_bytes", "segments"), [(0, 1), (-1, 2)], ids=["as large as allowed", "larger"])
def test_a_segment_ends_when_it_is_larger_than_allowed(more_bytes: int, segments: int) -> None:
    first = recorded(RecorderOptions()).chunks[0]
    limit = len(first.content) + more_bytes
    history = recorded(RecorderOptions(segment_bytes_max=limit))
    assert history.chunks[0] == first
    history.scale("web", 8)
    history.do(("take", "", 0))
    assert len({chunk.segment for chunk in history.chunks}) == segments


def test_decisions_wait_for_their_text_and_no_more_than_allowed() -> None:
    history = History(RecorderOptions(waiting_max=2))
    for replicas in range(1, 6):
        history.scale("web", replicas)
    assert history.recorder.is_behind
    assert [history.recorder.encode() for _ in range(3)] == [True, True, False]
    assert not history.recorder.is_behind
    assert history.replay().equal == 5


def test_a_new_segment_loses_decisions_that_wait_and_no_change_before_them() -> None:
    history = History(RecorderOptions())
    history.do(("report", "east", 500))
    history.scale("web", 3)
    history.do(("report", "north", 700))
    history.recorder.restart()
    history.scale("web", 9)
    verdict = history.replay()
    assert (verdict.equal, verdict.decisions) == (1, 1)


def recorded(options: RecorderOptions) -> History:
    history = History(options)
    history.scale("web", 6)
    history.do(("take", "", 0))
    return history
