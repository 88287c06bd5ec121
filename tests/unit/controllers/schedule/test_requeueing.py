"""When an object is looked at again because the time is over for which it tolerates a taint."""

from datetime import timedelta
from typing import Any, cast

import pytest

from federation.apimachinery.clock import ManualClock
from federation.controllers.schedule.requeueing import Requeueing
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.toleratedtaints import ToleratedTaints

KEY = Key("default", "web-deployments.apps")


@pytest.mark.parametrize(
    ("end_s", "took_s", "result", "requeue_after_s"),
    [
        (10.0, 0.0, DONE, 10.0),
        (10.0, 4.0, DONE, 6.0),
        (0.001, 0.002, DONE, 0.0),  # it ended between the decision and the end of the reconcile
        (0.0, 1.0, DONE, None),  # the decision knew it
        (10.0, 0.0, Result(3.0), 3.0),
    ],
)
async def test_an_end_that_the_decision_may_not_have_seen_is_looked_at_again(
    end_s: float, took_s: float, result: Result, requeue_after_s: float | None
) -> None:
    clock = ManualClock()
    requeueing = Requeueing(cast("Any", None), cast("Any", None), ToleratedTaints(), clock, 1.0)
    since = clock.now()
    await clock.advance(took_s)
    ends = {"east": since + timedelta(seconds=end_s)}
    assert requeueing.at_toleration_end(KEY, ends, result, since).requeue_after_s == requeue_after_s
