"""How many replicas the pods that wait in a member amount to."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.framework.capacity import capacity_of, rooms_of
from federation.scheduling.framework.testing import a_cluster, a_divided_unit
from federation.scheduling.framework.types import Cluster, NodeClass, pod_shape


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


@given(
    st.lists(st.tuples(st.integers(0, 9), *[st.integers(0, 40)] * 4), max_size=6),
    st.dictionaries(st.sampled_from(("cpu", "gpu", "memory")), st.integers(0, 9)),
    st.booleans(),
)
def test_capacity_is_the_sum_of_what_each_node_takes(
    groups: list[tuple[int, ...]], request: dict[str, int], knows_gpus: bool
) -> None:
    names = ("pods", "cpu", "memory", *(("gpu",) if knows_gpus else ()))
    columns = {name: tuple([group[at] for group in groups]) for at, name in enumerate(names, 1)}
    nodes = NodeClass(nodes=tuple([group[0] for group in groups]), free=columns)
    expected = 0
    for count, *free in groups:
        held = dict(zip(names, free, strict=False))
        expected += count * min(
            [held["pods"], *[held.get(name, 0) // amount for name, amount in request.items() if amount]]
        )
    cluster = Cluster("east", node_classes=(nodes,))
    assert capacity_of(cluster, pod_shape(tuple(sorted(request.items())))) == expected
