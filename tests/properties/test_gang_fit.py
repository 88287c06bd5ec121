"""A gang is never said to fit into a cluster that cannot hold it, compared with every arrangement of its pods."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.scheduling.framework.gangfit import find_shortfall
from federation.scheduling.framework.types import (
    ANY_NODE,
    Cluster,
    NodeClass,
    NodeNeeds,
    PodSet,
    Taint,
    Toleration,
    pod_shape,
)

GPU = "nvidia.com/gpu"
TAINT = Taint("gpu", "", "NoSchedule")
NEEDS = {
    "any": ANY_NODE,
    "a": NodeNeeds((("pool", "a"),)),
    "tolerant": NodeNeeds(tolerations=(Toleration("gpu", "Exists"),)),
}
Node = tuple[str, bool, tuple[int, int, int]]
"""The pool of a node, whether it is tainted, and its free cores, GPUs and pods."""
Pod = tuple[str, int, int]
"""The needs of a pod, and the cores and GPUs that it requests."""

nodes = st.tuples(
    st.sampled_from(("a", "b")),
    st.booleans(),
    st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(0, 4)),
)
pods = st.tuples(st.sampled_from(sorted(NEEDS)), st.integers(0, 5), st.integers(0, 1))
gangs = st.lists(st.tuples(pods, st.integers(1, 3)), min_size=1, max_size=3)


def to_cluster(given_nodes: list[Node]) -> Cluster:
    classes: dict[tuple[str, bool], list[tuple[int, int, int]]] = {}
    for pool, is_tainted, free in given_nodes:
        classes.setdefault((pool, is_tainted), []).append(free)
    total = {
        "cpu": 1000 * sum(free[0] for _, _, free in given_nodes),
        GPU: sum(free[1] for _, _, free in given_nodes),
    }
    return Cluster(
        "cluster",
        allocatable=total,
        available=total,
        node_classes=tuple(
            NodeClass(
                {"pool": pool},
                (TAINT,) if is_tainted else (),
                {"cpu": 1000 * max(f[0] for f in each), GPU: max(f[1] for f in each), "pods": max(f[2] for f in each)},
                (1,) * len(each),
                {
                    "cpu": tuple(1000 * free[0] for free in each),
                    GPU: tuple(free[1] for free in each),
                    "pods": tuple(free[2] for free in each),
                },
            )
            for (pool, is_tainted), each in classes.items()
        ),
    )


def to_request(pod: Pod) -> tuple[tuple[str, int], ...]:
    return tuple((name, amount) for name, amount in (("cpu", 1000 * pod[1]), (GPU, pod[2])) if amount)


def to_gang(gang: list[tuple[Pod, int]]) -> list[PodSet]:
    return [
        PodSet(f"part-{at}", count, count, pod_shape(to_request(pod), NEEDS[pod[0]]))
        for at, (pod, count) in enumerate(gang)
    ]


def openings(pod: Pod, where: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes after the pod was placed on one of them, for each that takes it."""
    needs, cores, gpus = pod
    for at, (pool, is_tainted, free) in enumerate(where):
        taints = [TAINT] if is_tainted else []
        left = (free[0] - cores, free[1] - gpus, free[2] - 1)
        if min(left) >= 0 and NEEDS[needs].admit("node", {"pool": pool}, taints):
            yield tuple(sorted((*where[:at], (pool, is_tainted, left), *where[at + 1 :])))


@lru_cache(maxsize=100_000)
def can_be_placed(gang: tuple[Pod, ...], where: tuple[Node, ...]) -> bool:
    """Return whether some arrangement of the pods exists."""
    return not gang or any(can_be_placed(gang[1:], after) for after in openings(gang[0], where))


@lru_cache(maxsize=100_000)
def is_always_placed(gang: frozenset[tuple[Pod, int]], where: tuple[Node, ...]) -> bool:
    """Return whether all pods find a node whatever order and nodes a scheduler chooses."""
    for pod, count in gang:
        after = list(openings(pod, where))
        rest = gang - {(pod, count)} | ({(pod, count - 1)} if count > 1 else set())
        if not after or not all(is_always_placed(rest, each) for each in after):
            return False
    return True


def flat(gang: list[tuple[Pod, int]]) -> tuple[Pod, ...]:
    return tuple(sorted(pod for pod, count in gang for _ in range(count)))


@examples(150)
@given(st.lists(nodes, min_size=1, max_size=3), gangs)
def test_a_gang_that_fits_can_be_placed(given_nodes: list[Node], gang: list[tuple[Pod, int]]) -> None:
    if find_shortfall(to_gang(gang), to_cluster(given_nodes)) is None:
        assert can_be_placed(flat(gang), tuple(sorted(given_nodes)))


@examples(100)
@given(
    st.lists(nodes, min_size=1, max_size=2),
    st.lists(st.tuples(pods, st.integers(1, 2)), min_size=1, max_size=2),
    st.lists(st.tuples(pods, st.integers(1, 2)), min_size=1, max_size=2),
)
def test_beside_recent_decisions_a_gang_fits_only_where_every_arrangement_leaves_room(
    given_nodes: list[Node], gang: list[tuple[Pod, int]], before: list[tuple[Pod, int]]
) -> None:
    """What was decided before fits, too: its cluster was chosen for it."""
    assumed: dict[tuple[tuple[str, int], ...], int] = {}
    for pod, count in before:
        assumed[to_request(pod)] = assumed.get(to_request(pod), 0) + count
    if find_shortfall(to_gang(gang), to_cluster(given_nodes), assumed) is None:
        together: dict[Pod, int] = {}
        for pod, count in gang:
            together[pod] = together.get(pod, 0) + count
        where = tuple(sorted(given_nodes))
        for after in placements(flat(before), where):
            assert is_always_placed(frozenset(together.items()), after)


def placements(gang: tuple[Pod, ...], where: tuple[Node, ...]) -> set[tuple[Node, ...]]:
    """Return the nodes after as many of the pods as fit were placed, in every way."""
    states = {where}
    for pod in gang:
        states |= {after for each in states for after in openings(pod, each)}
    return states


@examples(100)
@given(st.lists(nodes, min_size=1, max_size=3), st.tuples(pods, st.integers(1, 6)))
def test_equal_pods_fit_exactly_if_they_can_be_placed(given_nodes: list[Node], part: tuple[Pod, int]) -> None:
    fits = find_shortfall(to_gang([part]), to_cluster(given_nodes)) is None
    assert fits is can_be_placed(flat([part]), tuple(sorted(given_nodes)))


@examples(100)
@given(st.lists(nodes, min_size=1, max_size=3), gangs, nodes)
def test_another_node_never_takes_room_away(given_nodes: list[Node], gang: list[tuple[Pod, int]], more: Node) -> None:
    """It holds for what is proved by counting; a trial may arrange the pods otherwise with another node."""
    assumed: Mapping[tuple[tuple[str, int], ...], int] = {(("cpu", 1000),): 1}
    if find_shortfall(to_gang(gang), to_cluster(given_nodes), assumed) is None:
        assert find_shortfall(to_gang(gang), to_cluster([*given_nodes, more]), assumed) is None
