"""One hash over all clusters detects the same changes as one per cluster, also in KubeAdmiral's form."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.clustertriggers import (
    API_TYPES,
    CLUSTERS,
    KINDS,
    LABELS,
    TAINTS,
    ClusterTriggers,
    ClusterTriggerSource,
    is_readable,
)
from federation.scheduling.framework.testing import a_cluster
from federation.scheduling.framework.types import Cluster, GroupVersionKind
from federation.scheduling.snapshot import Snapshot

Facts = tuple[int, int, int, bool]
"""A cluster's label, taint and kind variants, and whether it is ready."""
FACTS = st.dictionaries(
    st.sampled_from("abcde"), st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.booleans())
)


def built(name: str, facts: Facts) -> Cluster:
    label, taint, kind, is_ready = facts
    cluster = (
        a_cluster(name).labelled(x=str(label)).tainted(f"t{taint}").serving(GroupVersionKind("", "v1", f"K{kind}"))
    )
    return (cluster if is_ready else cluster.unready()).built()


def a_state(clusters: Mapping[str, Facts], *, as_kubeadmiral: bool = False) -> ClusterTriggers:
    snapshot = Snapshot(1, tuple(built(name, clusters[name]) for name in sorted(clusters)))
    return ClusterTriggerSource(as_kubeadmiral=as_kubeadmiral).state(snapshot)


def written(state: ClusterTriggers) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(f"{{{state.text}}}")
    assert is_readable(found)
    return found


def test_the_triggers_stay_the_same_object_until_a_cluster_changes_or_becomes_ready() -> None:
    source = ClusterTriggerSource()
    states = [
        source.state(Snapshot(generation, (built("a", facts),)))
        for generation, facts in enumerate([(0, 0, 0, False), (0, 0, 0, False), (0, 0, 0, True), (0, 1, 0, True)])
    ]
    assert states[0] is states[1]
    assert len({state.text for state in states}) == 3


@given(FACTS, FACTS)
def test_changes_are_those_of_the_clusters_that_were_known(before: dict[str, Facts], after: dict[str, Facts]) -> None:
    expected = {
        kind
        for kind, at in ((LABELS, 0), (TAINTS, 1), (API_TYPES, 2))
        if any(name not in after or after[name][at] != facts[at] for name, facts in before.items())
    }
    if any(facts[3] and not before.get(name, (0, 0, 0, False))[3] for name, facts in after.items()):
        expected.add(CLUSTERS)
    old = written(a_state(before))
    assert a_state(after).changes_since(old) == expected
    # The same clusters in the earlier form.
    longer = written(a_state(before, as_kubeadmiral=True)) | {CLUSTERS: old[CLUSTERS]}
    assert a_state(after).changes_since(longer) == expected


@given(FACTS, FACTS)
def test_in_kubeadmirals_form_who_has_joined_counts(before: dict[str, Facts], after: dict[str, Facts]) -> None:
    old = written(a_state(before, as_kubeadmiral=True))
    changed = a_state(after, as_kubeadmiral=True).changes_since(old)
    assert (CLUSTERS in changed) == bool(after.keys() - before.keys())


@given(FACTS)
def test_nothing_changes_between_forms(clusters: dict[str, Facts]) -> None:
    for old in (True, False):
        past = written(a_state(clusters, as_kubeadmiral=old))
        assert a_state(clusters).changes_since(past) == set()


def test_hundreds_of_clusters_fit_into_some_kilobytes() -> None:
    clusters = {f"cluster-{number:04}": (0, 0, 0, True) for number in range(2000)}
    state = a_state(clusters)
    assert len(state.text) < 16 * len(clusters)
    assert len(a_state(clusters, as_kubeadmiral=True).text) > 90 * len(clusters)
    assert list(written(a_state(clusters | {"cluster-0000": (0, 0, 0, False)}))) == [
        "clusterAPIResourceTypesHash",
        "clusterLabelsHash",
        "clusterTaintsHash",
        "clusters",
        "clustersUnready",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {CLUSTERS: "east"},
        {CLUSTERS: [1]},
        {"clustersUnready": "east"},
        {LABELS: [{"key": "east"}]},
        {"clusterAPIResourceTypesHash": "1", "clusterLabelsHash": "1"},
        {"clusterAPIResourceTypesHash": 1, "clusterLabelsHash": "1", "clusterTaintsHash": "1"},
    ],
)
def test_triggers_that_cannot_be_compared_are_unreadable(wrong: dict[str, Any]) -> None:
    assert not is_readable(wrong)


def test_a_form_without_any_clusters_is_readable() -> None:
    assert is_readable({})
    assert a_state({"a": (0, 0, 0, True)}).changes_since({}) == {CLUSTERS}
    assert a_state({}).changes_since(dict.fromkeys(KINDS)) == set()
