"""Which expressions of a subset are about clusters, and which clusters they select."""

from typing import Any

import pytest

from federation.apimachinery.selectors import SelectorError
from federation.features.workloadspread.rules.clusterterms import cluster_requirements, covers, without_cluster_terms


def a_subset(*expressions: tuple[str, str, list[str]], **term: Any) -> dict[str, Any]:
    matching = [{"key": key, "operator": operator, "values": values} for key, operator, values in expressions]
    return {"name": "s", "requiredNodeSelector": {"matchExpressions": matching, **term}}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("cluster.kubeadmiral.io/name", "In", ["east"], True),
        ("cluster.kubeadmiral.io/name", "NotIn", ["east"], False),
        ("cluster.kubeadmiral.io/name", "Exists", [], True),
        ("cluster.kubeadmiral.io/vendor", "In", ["aws"], True),
        ("cluster.kubeadmiral.io/vendor", "DoesNotExist", [], False),
        ("topology.kubernetes.io.cluster.kubeadmiral.io/region", "In", ["us"], False),
        ("topology.kubernetes.io.cluster.kubeadmiral.io/region", "In", ["us", "eu"], True),
        ("cluster.kubeadmiral.io/rank", "Gt", ["2"], True),
        ("cluster.kubeadmiral.io/rank", "Lt", ["2"], False),
    ],
)
def test_labels_and_name_of_a_cluster_decide(key: str, operator: str, values: list[str], expected: bool) -> None:
    labels = {"vendor": "aws", "topology.kubernetes.io/region": "eu", "rank": "3"}
    assert covers(cluster_requirements(a_subset((key, operator, values))), "east", labels) is expected


@pytest.mark.parametrize(
    "key", ["pool", "topology.kubernetes.io/region", "kubeadmiral.io/name", "mycluster.kubeadmiral.io/x"]
)
def test_other_keys_select_nodes(key: str) -> None:
    subset = a_subset((key, "In", ["a"]))
    assert cluster_requirements(subset) == ()
    assert without_cluster_terms(subset) == subset


def test_members_get_no_expressions_on_clusters() -> None:
    mixed = a_subset(("cluster.kubeadmiral.io/name", "In", ["east"]), ("pool", "In", ["spot"]))
    assert without_cluster_terms(mixed) == a_subset(("pool", "In", ["spot"]))
    alone = a_subset(("cluster.kubeadmiral.io/name", "In", ["east"]))
    assert without_cluster_terms(alone) == {"name": "s"}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]
    with_fields = a_subset(("cluster.kubeadmiral.io/name", "In", ["east"]), matchFields=fields)
    assert without_cluster_terms(with_fields) == {"name": "s", "requiredNodeSelector": {"matchFields": fields}}


@pytest.mark.parametrize(
    "subset", [{}, {"requiredNodeSelector": None}, {"requiredNodeSelector": {"matchExpressions": None}}]
)
def test_a_subset_without_expressions_covers_every_cluster(subset: dict[str, Any]) -> None:
    assert covers(cluster_requirements(subset), "east", {})


def test_a_malformed_expression_is_refused() -> None:
    with pytest.raises(SelectorError):
        cluster_requirements(a_subset(("cluster.kubeadmiral.io/name", "In", [])))
    with pytest.raises(SelectorError):
        cluster_requirements(a_subset(("cluster.kubeadmiral.io/name", "Near", ["east"])))
