"""Which project a namespace belongs to, and which clusters a project has."""

from typing import Any

import pytest

from federation.planning.projects.projectindex import ProjectIndex, compile_project, namespace_of


def a_project(name: str, *namespaces: str, created: str = "2026-01-01T00:00:00Z", **clusters: Any) -> dict[str, Any]:
    metadata = {"name": name, "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"namespaces": list(namespaces), "clusters": clusters}}


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        ({}, set()),
        ({"names": ["a"]}, {"a"}),
        ({"selector": {}}, {"a", "b"}),
        ({"names": ["a"], "selector": {"matchLabels": {"team": "shop"}}}, {"a", "b"}),
        ({"selector": {"matchExpressions": [{"key": "team", "operator": "Nonsense"}]}}, set()),
    ],
    ids=["none", "named", "an empty selector", "named or selected", "a malformed selector selects nothing"],
)
def test_clusters(clusters: dict[str, Any], expected: set[str]) -> None:
    project = compile_project(a_project("shop", "shop", **clusters))
    labels = {"a": {}, "b": {"team": "shop"}}
    assert {name for name, each in labels.items() if project.has(name, each)} == expected


def test_the_oldest_of_several_projects_has_a_namespace_in_whatever_order_they_are_seen() -> None:
    old, young = a_project("z", "one"), a_project("a", "one", "two", created="2026-01-02T00:00:00Z")
    for order in ((old, young), (young, old)):
        index = ProjectIndex(order)
        assert [getattr(index.of(each), "name", None) for each in ("one", "two", "three")] == ["z", "a", None]
    assert index.remove("z") == {"one"}
    assert getattr(index.of("one"), "name", None) == "a"
    assert index.remove("a") == {"one", "two"}
    assert (index.of("one"), len(index), index.remove("a")) == (None, 0, frozenset())


def test_a_change_names_the_namespaces_whose_clusters_may_differ() -> None:
    index = ProjectIndex([a_project("shop", "one", "two", names=["a"])])
    assert index.put(a_project("shop", "one", "two", names=["a"])) == frozenset()
    assert index.put(a_project("shop", "one", names=["a", "b"])) == {"one", "two"}


def test_a_namespace_is_limited_by_its_own_project() -> None:
    template = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert namespace_of({"metadata": {"name": "shop-namespaces"}, "spec": {"template": template}}) == "shop"
    assert namespace_of({"metadata": {"name": "x", "namespace": "shop"}, "spec": {"template": {}}}) == "shop"
    assert namespace_of({"metadata": {"name": "x"}, "spec": {"template": {"kind": "ClusterRole"}}}) == ""
