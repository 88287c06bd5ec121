"""The flavours that pods can use, and what they get from them."""

import pytest

from federation.features.queues.rules.configuration import Component, compile_flavor, compile_queue, options_for
from federation.planning.rendering.admittednodes import PodNodes

TAINT = {"key": "gpu", "operator": "Exists"}
QUEUE = compile_queue(
    {
        "metadata": {"name": "ml"},
        "spec": {
            "flavors": [{"name": name, "resources": [{"name": "cpu", "nominalQuota": "9"}]} for name in ("gpu", "any")]
        },
    }
)


@pytest.mark.parametrize(
    ("assign", "selector", "is_open", "expected"),
    [
        pytest.param(False, {}, True, [("any", None)], id="labels are not assigned"),
        pytest.param(
            False,
            {"pool": "gpu"},
            True,
            [("gpu", PodNodes({"pool": "gpu"}, {}, [TAINT])), ("any", None)],
            id="has them",
        ),
        pytest.param(
            True, {}, True, [("gpu", PodNodes({}, {"pool": "gpu"}, [TAINT])), ("any", None)], id="labels are assigned"
        ),
        pytest.param(
            True,
            {"zone": "1"},
            True,
            [("gpu", PodNodes({"zone": "1"}, {"pool": "gpu"}, [TAINT])), ("any", None)],
            id="beside others",
        ),
        pytest.param(True, {"pool": "cpu"}, True, [("any", None)], id="the pods want other nodes"),
        pytest.param(True, {}, False, [("any", None)], id="no place for labels"),
    ],
)
def test_pods_can_use_a_flavor(
    assign: bool, selector: dict[str, str], is_open: bool, expected: list[tuple[str, PodNodes | None]]
) -> None:
    gpu = {"assignNodes": assign, "nodeLabels": {"pool": "gpu"}, "tolerations": [TAINT]}
    flavors = {
        name: compile_flavor({"metadata": {"name": name}, "spec": spec}) for name, spec in (("gpu", gpu), ("any", {}))
    }
    component = Component(frozenset(selector.items()), 2, (("cpu", 1_000),), is_open=is_open)

    found = options_for((component,), QUEUE, flavors, {"one": {}})

    assert [(next(iter(each.amounts))[0], next(iter(each.nodes), None)) for each in found] == expected
