"""Columns of the newest clusters: what a report recomputes, which snapshots read them, and how long they are kept."""

from operator import attrgetter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.framework.capacity import could_run_each
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.columns import Columns
from federation.scheduling.framework.testing import a_cluster
from federation.scheduling.framework.types import Cluster, pod_shape
from federation.scheduling.snapshot import ClusterCache

JOINED = [{"type": "Joined", "status": "True"}]
NAME = attrgetter("name")


class Counted:
    """A value of clusters that counts how often it is computed."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, cluster: Cluster) -> int:
        self.calls += 1
        return cluster.available.get("cpu", 0)


def report(cache: ClusterCache, name: str, cpu: int, **metadata: Any) -> None:
    status = {"conditions": JOINED, "resources": {"available": {"cpu": f"{cpu}m"}}}
    cache.update({"metadata": {"name": name, **metadata}, "status": status})


def test_a_report_computes_one_value_and_a_decision_none() -> None:
    cache, cpu = ClusterCache(), Counted()
    for name in ("b", "a", "c"):
        report(cache, name, 1)
    assert cache.snapshot().group.column("cpu", cpu) == (1, 1, 1)
    report(cache, "b", 2)
    assert cpu.calls == 4
    assert cache.snapshot().group.column("cpu", cpu) == (1, 2, 1)
    report(cache, "b", 2, labels={"zone": "z"})
    assert cache.snapshot().group.subset((2, 1)).column("cpu", cpu) == (1, 2)
    assert cpu.calls == 5


def test_an_earlier_snapshot_keeps_its_values() -> None:
    cache, cpu = ClusterCache(), Counted()
    for name in ("a", "b"):
        report(cache, name, 1)
    before, unread = cache.snapshot(), cache.snapshot()
    assert before.group.column("cpu", cpu) == (1, 1)
    report(cache, "a", 2)
    assert unread.group.column("name", NAME) == ("a", "b")
    assert unread.group.amounts("cpu")[1] == (1, 1)
    assert (before.group.column("cpu", cpu), cache.snapshot().group.column("cpu", cpu)) == ((1, 1), (2, 1))


def test_columns_follow_clusters_that_come_and_go() -> None:
    cache, cpu = ClusterCache(), Counted()
    for number, name in enumerate(("a", "c", "b")):
        report(cache, name, number)
        assert sorted(cache.snapshot().group.column("cpu", cpu)) == list(range(number + 1))
    assert cache.snapshot().group.column("cpu", cpu) == (0, 2, 1)
    cache.remove("a")
    report(cache, "c", 7)
    assert cache.snapshot().group.column("cpu", cpu) == (2, 7)


def test_a_column_that_is_not_read_is_removed() -> None:
    cluster, cpu = a_cluster("a").built(), Counted()
    columns = Columns([cluster])
    columns.read("cpu", cpu)
    for _ in range(100):
        columns.replace(0, cluster)
    assert cpu.calls == 31
    assert columns.read("cpu", cpu) == (0,)


def test_the_number_of_columns_is_limited_and_those_in_use_stay() -> None:
    cluster, cpu = a_cluster("a").built(), Counted()
    columns = Columns([cluster])
    for number in range(300):
        columns.replace(0, cluster)
        columns.read("cpu", cpu)
        columns.read(number, NAME)
    assert cpu.calls == 300
    assert len(columns._columns) <= 128


def test_a_subset_of_a_subset_has_the_columns_of_the_whole() -> None:
    names = ("a", "b", "c", "d")
    whole = ClusterGroup.of(
        [a_cluster(name).with_nodes(1, cpu=name_cpu).built() for name, name_cpu in zip(names, "1234", strict=True)]
    )
    odd = whole.subset((3, 1, 0))
    last = odd.subset((2, 0))
    assert (odd.names, last.names, odd.subset(()).names) == (("d", "b", "a"), ("a", "d"), ())
    assert last.whole is whole
    assert could_run_each(last, pod_shape((("cpu", 2000),))) == (False, True)
    assert ClusterGroup.of(last) is last


def test_the_column_that_was_not_read_for_the_longest_time_makes_room() -> None:
    clusters, counted = [a_cluster("a").built()], [Counted() for _ in range(130)]
    columns = Columns(clusters)
    for number in range(128):
        columns.read(number, counted[number])
    columns.replace(0, clusters[0])
    for number in (0, *range(2, 128)):
        columns.read(number, counted[number])
    columns.read(128, counted[128])
    assert [counted[number].calls for number in (0, 1, 127)] == [2, 2, 2]
    columns.read(0, counted[0])
    columns.read(127, counted[127])
    assert (counted[0].calls, counted[127].calls) == (2, 2), "columns that were read lately stay"
    columns.read(1, counted[1])
    assert counted[1].calls == 3, "it was removed"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.booleans()), max_size=30), st.integers(0, 30))
def test_the_list_of_reports_names_the_clusters_that_all_versions_name(
    reports: list[tuple[str, int, bool]], at: int
) -> None:
    cache, seen = ClusterCache(), []
    for name in "abcd":
        report(cache, name, 9)
    for name, cpu, is_read in reports:
        report(cache, name, cpu)
        if is_read:
            seen.append(cache.snapshot().group.versions)
    group = cache.snapshot().group
    for versions in seen[at:]:
        assert group.changed_since(versions) == group.changed_since(tuple(versions))  # of a plain one no list is known


def test_more_reports_than_are_listed_are_found_among_all_versions() -> None:
    cache = ClusterCache()
    for name in ("a", "b"):
        report(cache, name, 1)
    early = cache.snapshot().group.versions
    for cpu in range(5_000):
        report(cache, "b", 2 + cpu % 2)
    assert cache.snapshot().group.changed_since(early) == (1,)
