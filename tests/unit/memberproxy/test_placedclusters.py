"""Which clusters' objects the host shows: counted from placements, whatever the order of the events."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import Object
from federation.client.pool import ClusterPool
from federation.memberproxy.placedclusters import PlacedClusters

CLUSTERS, NAMESPACES = ("east", "north", "west"), ("shop", "bank")


def a_federated(namespace: str, clusters: frozenset[str], departed: str = "") -> Object:
    annotations = {names.DEPARTED_CLUSTERS: f'["{departed}"]'} if departed else {}
    placement = [{"cluster": cluster} for cluster in sorted(clusters)]
    return {
        "metadata": {"name": "web", "namespace": namespace, "annotations": annotations},
        "spec": {"placements": [{"controller": "c", "placement": placement}]},
    }


def a_pool() -> ClusterPool:
    pool = ClusterPool()
    for cluster in CLUSTERS:
        pool.set_connection(cluster, Connection("https://127.0.0.1:1"))
    return pool


STATES = st.none() | st.tuples(st.sampled_from(NAMESPACES), st.frozensets(st.sampled_from(CLUSTERS)))


@given(st.lists(st.tuples(st.integers(0, 3), STATES), max_size=20))
def test_counts_are_those_of_the_present_objects(events: list[tuple[int, tuple[str, frozenset[str]] | None]]) -> None:
    async def main() -> None:
        placed, present = PlacedClusters(a_pool()), dict[int, tuple[str, frozenset[str]]]()
        for number, state in events:
            old = present.pop(number, None)
            if old is not None and (state is None or state[0] != old[0]):
                placed.changed(a_federated(*old), None)
                old = None
            if state is not None:
                placed.changed(a_federated(*old) if old else None, a_federated(*state))
                present[number] = state
        for namespace in NAMESPACES:
            wanted = sorted(set().union(*(clusters for where, clusters in present.values() if where == namespace)))
            assert placed.clusters(namespace) == wanted
            assert [cluster for cluster in CLUSTERS if placed.is_visible(cluster, namespace)] == wanted
        assert placed.clusters("") == sorted(set().union(*(clusters for _, clusters in present.values())))

    asyncio.run(main())


async def test_a_cluster_that_an_object_is_leaving_counts_until_its_object_is_gone() -> None:
    placed = PlacedClusters(a_pool())
    before, leaving = a_federated("shop", frozenset({"east"})), a_federated("shop", frozenset(), "east")
    placed.changed(None, before)
    placed.changed(before, leaving)
    assert placed.clusters("shop") == ["east"]
    placed.changed(leaving, a_federated("shop", frozenset()))
    assert placed.clusters("shop") == []


async def test_listeners_learn_of_new_clusters_only_while_they_listen() -> None:
    placed, heard = PlacedClusters(a_pool()), list[str]()
    first, second = a_federated("shop", frozenset({"east"})), a_federated("shop", frozenset({"east", "west"}))
    with placed.listening(lambda: heard.append("changed")):
        placed.changed(None, first)
        placed.changed(None, first)
        placed.changed(first, second)
    placed.changed(second, first)
    assert heard == ["changed", "changed"]
