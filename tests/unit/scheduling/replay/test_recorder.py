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


def recorded(options: RecorderOptions) -> History:
    history = History(options)
    history.scale("web", 6)
    history.do(("take", "", 0))
    return history
