"""How many replicas the pods that wait in a member amount to."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.testing import a_cluster, a_divided_unit


@pytest.mark.parametrize(
    ("waiting", "request_", "expected"),
    [
        ({}, {"cpu": 500}, {}),
        ({"cpu": 1200, "memory": 10, "pods": 7}, {"cpu": 500}, {"east": 3}),
        ({"cpu": 1200, "memory": 10, "pods": 7}, {"cpu": 500, "memory": 2}, {"east": 5}),
        ({"cpu": 1200, "pods": 7}, {"memory": 2}, {}),
        ({"cpu": 1200, "pods": 7}, {}, {"east": 7}),
    ],
)
def test_waiting_pods_amount_to_the_replicas_that_their_requests_would_hold(
    waiting: Mapping[str, int], request_: dict[str, int], expected: Mapping[str, int]
) -> None:
    cluster = replace(a_cluster("east").with_nodes(2, cpu="2").built(), waiting=waiting)
    room = rooms_of(a_divided_unit(4, request=request_), [cluster])
    assert room is not None
    assert room.waiting == expected
