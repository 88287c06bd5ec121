"""Which taints of a node keep pods away."""

from typing import Any

import pytest

from federation.planning.clusters.clusterresources import taints_of


@pytest.mark.parametrize(
    ("taints", "expected"),
    [
        (None, ()),
        ([{"key": "a", "value": "b", "effect": "NoSchedule"}], (("a", "b", "NoSchedule"),)),
        ([{"key": "a", "value": None, "effect": "NoExecute"}], (("a", "", "NoExecute"),)),
        ([{"effect": "NoExecute"}], (("", "", "NoExecute"),)),
        ([{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b"}], ()),
        (
            [{"key": "b", "effect": "NoExecute"}, {"key": "a", "effect": "NoExecute"}],
            (("a", "", "NoExecute"), ("b", "", "NoExecute")),
        ),
    ],
    ids=str,
)
def test_taints_have_key_value_and_effect_in_a_fixed_order(taints: Any, expected: tuple[Any, ...]) -> None:
    assert taints_of({"spec": {"taints": taints}}) == expected
