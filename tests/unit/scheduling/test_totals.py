"""The order of clusters by score: incremental updates give the same order as sorting."""

from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.normalization import BestFirst, Ranking, Totals, best_first, scored_resources
from federation.scheduling.framework.testing import a_cluster
from federation.scheduling.framework.types import ClusterScore

CLUSTERS = [a_cluster(f"c{number:02}").built() for number in range(64)]


@given(
    st.lists(st.integers(-3, 3), min_size=64, max_size=64),
    st.lists(st.dictionaries(st.integers(0, 63), st.integers(-3, 3), max_size=4), max_size=6),
)
def test_a_mended_order_is_the_order(scores: list[int], history: list[dict[int, int]]) -> None:
    clusters, ranking = ClusterGroup.of(CLUSTERS), Ranking(scores)
    for changes in [{}, *history]:
        before = ranking.order.copy()
        scores = [changes.get(at, score) for at, score in enumerate(scores)]
        ranking, earlier = ranking.with_scores(scores), ranking
        assert earlier.order == before
        totals = Totals(clusters, ranking)
        plain = sorted(totals, key=lambda entry: (-entry.score, entry.cluster.name))
        ordered = best_first(totals)
        assert isinstance(ordered, BestFirst)
        assert list(ordered) == plain
        assert ordered.names == tuple(entry.cluster.name for entry in plain)
        assert ordered.clusters == tuple(entry.cluster for entry in plain)
        assert best_first(ordered) is ordered
        assert list(ordered[:3]) == plain[:3]
        assert (ordered[3], len(ordered)) == (plain[3], 64)


def test_any_clusters_can_be_put_in_order() -> None:
    scored = [ClusterScore(CLUSTERS[2], 1), ClusterScore(CLUSTERS[1], 1), ClusterScore(CLUSTERS[0], 2)]
    assert [entry.cluster.name for entry in best_first(scored)] == ["c00", "c01", "c02"]


def test_cpu_and_memory_count_always_and_others_when_they_are_requested() -> None:
    assert list(scored_resources({})) == ["cpu", "memory"]
    assert list(scored_resources({"cpu": 1, "memory": 1})) == ["cpu", "memory"]
    assert list(scored_resources({"cpu": 1, "gpu": 0})) == ["cpu", "memory"]
    assert list(scored_resources({"x": 1, "memory": 1, "gpu": 2, "cpu": 1, "none": 0})) == ["cpu", "memory", "gpu", "x"]
