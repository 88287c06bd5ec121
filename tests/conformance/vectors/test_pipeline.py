"""Vectors `pending_controllers`: who may act, and what is pending afterwards."""

from typing import Any

import orjson
from tests.support.vectors import each_case, filled, load

from federation.planning.federatedobject import pendingcontrollers


@each_case(load("pending_controllers"))
def test_the_pipeline_advances_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], pending=[], setDownstream=False, ftcControllers=[])
    expected = filled(case["expected"], fulfilled=False, pending=[])
    stages = pendingcontrollers.parse(orjson.dumps(given["pending"]).decode())
    if given["op"] == "dependenciesFulfilled":
        assert pendingcontrollers.may_act(stages, given["controller"]) is expected["fulfilled"]
        return
    after = pendingcontrollers.advance(
        stages, given["controller"], is_changed=given["setDownstream"], pipeline=given["ftcControllers"]
    )
    assert [list(stage) for stage in after] == expected["pending"]
