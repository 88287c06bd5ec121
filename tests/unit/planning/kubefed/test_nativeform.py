"""The native form of KubeFed's federated objects: the object and its policies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kubefedplanner import plan_kubefed

from federation.api import names
from federation.api.kubefedkinds import FEDERATED_KINDS
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import CLUSTER_ROLES, DEPLOYMENTS, NAMESPACES, Object
from federation.planning.kubefed.nativeform import Derivation, derive
from federation.planning.kubefed.preference import to_divided_policy
from federation.planning.kubefed.selection import ALL
from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Preference, plan_replicas

DEPLOYMENT = FEDERATED_KINDS["FederatedDeployment"]
TEMPLATE = {"metadata": {"labels": {"app": "web"}, "finalizers": ["x"]}, "spec": {"replicas": 2}, "status": {}}


def federated(name: str = "web", annotations: Object | None = None, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "shop", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"template": TEMPLATE, "placement": {"clusterSelector": {}}, **spec}}


def preference(**spec: Any) -> Object:
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"totalReplicas": 9, **spec}}


def policy(derivation: Derivation) -> Any:
    return next(obj["spec"] for resource, obj in derivation.objects if resource == PROPAGATION_POLICIES)


def native(derivation: Derivation) -> Object:
    return derivation.objects[-1][1]


def test_a_template_becomes_an_object_that_names_its_policies() -> None:
    derivation = derive(federated(), DEPLOYMENT)
    assert native(derivation) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": {"app": "web", names.PROPAGATION_POLICY_LABEL: "web-deployment"},
        },
        "spec": {"replicas": 2},
    }
    assert [resource for resource, _ in derivation.objects] == [PROPAGATION_POLICIES, DEPLOYMENTS]
    assert derivation.removed == [(OVERRIDE_POLICIES, "web-deployment")]


def test_the_policy_has_what_kubefed_does() -> None:
    assert policy(derive(federated(), DEPLOYMENT)) == {
        "schedulingMode": "Duplicate",
        "failover": {"mode": "Never"},
        "disableFollowerScheduling": True,
        "reschedulePolicy": {
            "rescheduleWhen": {"clusterJoined": True, "clusterLabelsChanged": True, "policyContentChanged": True}
        },
    }


def test_a_list_takes_precedence_over_a_selector() -> None:
    placement = {"clusters": [{"name": "east"}, {"name": "east"}], "clusterSelector": {"matchLabels": {"a": "b"}}}
    spec = policy(derive(federated(placement=placement), DEPLOYMENT))
    assert spec["placement"] == [{"cluster": "east"}]
    assert "clusterSelector" not in spec


def test_a_selector_is_kept() -> None:
    expressions = [{"key": "zone", "operator": "Exists"}]
    placement = {"clusterSelector": {"matchLabels": {"a": "b"}, "matchExpressions": expressions}}
    spec = policy(derive(federated(placement=placement), DEPLOYMENT))
    assert spec["clusterSelector"] == {"a": "b"}
    assert spec["clusterAffinity"] == [{"matchExpressions": [{"key": "zone", "operator": "Exists", "values": []}]}]


def test_no_cluster_removes_everything_and_no_placement_removes_nothing() -> None:
    nowhere = derive(federated(placement={"clusters": []}), DEPLOYMENT)
    assert nowhere.objects == []
    assert [name for _, name in nowhere.removed] == ["web-deployment", "web-deployment", "web"]
    for placement in (None, {}):
        silent = derive(federated(placement=placement), DEPLOYMENT)
        assert silent.undecided
        assert [resource for resource, _ in silent.objects] == [DEPLOYMENTS]
        assert silent.removed == [(OVERRIDE_POLICIES, "web-deployment")]


@pytest.mark.parametrize(
    ("namespace", "own", "expected"),
    [
        ({"clusters": [{"name": "a"}, {"name": "b"}]}, {"clusters": [{"name": "b"}, {"name": "c"}]}, ["b"]),
        ({"clusters": [{"name": "a"}]}, {"clusterSelector": {}}, ["a"]),
        ({"clusterSelector": {}}, {"clusters": [{"name": "a"}]}, ["a"]),
        ({}, {"clusters": [{"name": "a"}]}, ["a"]),
    ],
)
def test_the_placement_of_the_namespace_holds_too(namespace: Object, own: Object, expected: list[str]) -> None:
    spec = policy(derive(federated(placement=own), DEPLOYMENT, None, {"spec": {"placement": namespace}}))
    assert [entry["cluster"] for entry in spec["placement"]] == expected


def test_clusters_of_a_namespace_and_of_an_object_without_a_common_one_are_none() -> None:
    outside = {"spec": {"placement": {"clusters": [{"name": "c"}]}}}
    assert derive(federated(placement={"clusters": [{"name": "a"}]}), DEPLOYMENT, None, outside).objects == []


def test_selectors_of_a_namespace_and_of_an_object_must_both_match() -> None:
    own = {"clusterSelector": {"matchLabels": {"a": "1", "b": "2"}}}
    namespace = {"clusterSelector": {"matchLabels": {"a": "other", "b": "2", "c": "3"}}}
    spec = policy(derive(federated(placement=own), DEPLOYMENT, None, {"spec": {"placement": namespace}}))
    assert spec["clusterSelector"] == {"a": "1", "b": "2", "c": "3"}
    expression = {"key": "a", "operator": "In", "values": ["other"]}
    assert spec["clusterAffinity"] == [{"matchExpressions": [expression]}]


def test_overrides_become_rules_per_cluster() -> None:
    patches = [{"path": "/spec/replicas", "value": 5}, {"op": "remove", "path": "/spec/paused"}]
    overrides = [{"clusterName": "east", "clusterOverrides": patches}, {"clusterName": "west"}]
    given = federated(overrides=overrides)
    (rule,) = derive(given, DEPLOYMENT).objects[1][1]["spec"]["overrideRules"]
    assert rule == {
        "targetClusters": {"clusters": ["east"]},
        "overriders": {
            "jsonpatch": [
                {"path": "/spec/replicas", "operator": "replace", "value": 5},
                {"path": "/spec/paused", "operator": "remove"},
            ]
        },
    }
    assert native(derive(given, DEPLOYMENT))["metadata"]["labels"][names.OVERRIDE_POLICY_LABEL] == "web-deployment"
    (rule,) = derive(given, DEPLOYMENT, preference()).objects[1][1]["spec"]["overrideRules"]
    assert [patch["path"] for patch in rule["overriders"]["jsonpatch"]] == ["/spec/paused"]


def test_kubefeds_marks_become_ours() -> None:
    annotations = native(derive(federated(annotations={"kubefed.io/orphan": "true"}, retainReplicas=True), DEPLOYMENT))
    assert annotations["metadata"]["annotations"] == {names.ORPHAN: "all", names.RETAIN_REPLICAS: "true"}


def test_a_preference_divides_its_total() -> None:
    given = preference(clusters={"*": {"maxReplicas": 0}, "b": {"weight": 2, "minReplicas": 1}}, rebalance=True)
    derivation = derive(federated(placement=None), DEPLOYMENT, given)
    assert native(derivation)["spec"]["replicas"] == 9
    spec = policy(derivation)
    assert spec["schedulingMode"] == "Divide"
    assert spec["placement"] == [
        {"cluster": "b", "preferences": {"weight": 2, "minReplicas": 1}},
        {"cluster": "*", "preferences": {"weight": 0, "maxReplicas": 0}},
    ]
    assert spec["reschedulePolicy"]["replicaRescheduling"] == {"avoidDisruption": False}
    assert spec["autoMigration"] == {"when": {"podUnschedulableFor": "1m"}, "keepUnschedulableReplicas": True}


def test_a_division_stays_when_its_preference_is_gone() -> None:
    overrides = [{"clusterName": "east", "clusterOverrides": [{"path": "/spec/replicas", "value": 5}]}]
    derivation = derive(federated(overrides=overrides), DEPLOYMENT, divided_replicas=9)
    assert [resource for resource, _ in derivation.objects] == [DEPLOYMENTS]
    assert native(derivation)["spec"]["replicas"] == 9
    assert "the 9 replicas stay divided" in derivation.undecided
    assert not derive(federated(), DEPLOYMENT, preference(), divided_replicas=9).undecided


def test_a_preference_stays_within_the_clusters_that_it_may_use() -> None:
    placement = {"clusterSelector": {"matchLabels": {"tier": "prod"}}}
    given = preference(intersectWithClusterSelector=True)
    spec = policy(derive(federated(placement=placement), DEPLOYMENT, given))
    assert spec["clusterSelector"] == {"tier": "prod"}
    assert spec["placement"] == [{"cluster": "*", "preferences": {"weight": 1}}]
    namespace = {"spec": {"placement": {"clusters": [{"name": "a"}, {"name": "b"}]}}}
    spec = policy(derive(federated(placement=placement), DEPLOYMENT, preference(), namespace))
    assert [entry["cluster"] for entry in spec["placement"]] == ["a", "b"]
    assert "clusterSelector" not in spec
    none = preference(clusters={"c": {"weight": 1}})
    assert derive(federated(), DEPLOYMENT, none, namespace).objects == []


def test_a_namespace_is_labelled_and_a_role_has_a_cluster_wide_policy() -> None:
    given = {
        "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}}},
    }
    ((resource, namespace),) = derive(given, FEDERATED_KINDS["FederatedNamespace"]).objects
    assert (resource, namespace["metadata"]) == (NAMESPACES, {"name": "shop", "labels": {"a": "b"}})
    role = {"metadata": {"name": "reader"}, "spec": {"template": {"rules": []}, "placement": {"clusterSelector": {}}}}
    derived = derive(role, FEDERATED_KINDS["FederatedClusterRole"])
    assert [each for each, _ in derived.objects] == [CLUSTER_PROPAGATION_POLICIES, CLUSTER_ROLES]
    assert native(derived)["metadata"]["labels"] == {names.CLUSTER_PROPAGATION_POLICY_LABEL: "reader-clusterrole"}


def test_long_names_fit_into_a_label() -> None:
    derivation = derive(federated("w" * 100), DEPLOYMENT)
    label = native(derivation)["metadata"]["labels"][names.PROPAGATION_POLICY_LABEL]
    assert len(label) <= 63
    assert derivation.objects[0][1]["metadata"]["name"] == label


def test_a_kind_without_a_shipped_type_is_selected_by_its_policy() -> None:
    spec = policy(derive(federated(), FEDERATED_KINDS["FederatedReplicaSet"]))
    assert spec["resourceSelectors"] == [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}]


LIMITS = st.fixed_dictionaries(
    {"weight": st.integers(0, 5)},
    optional={"minReplicas": st.integers(0, 4), "maxReplicas": st.integers(4, 12)},
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c", "*"]), LIMITS, max_size=4), st.integers(0, 30), st.booleans())
def test_a_conversion_moves_no_replica(clusters: dict[str, Object], total: int, rebalance: bool) -> None:
    """What KubeFed has divided, the policy leaves as it is; with `rebalance`, a profile with KubeAdmiral's formula does."""
    given = preference(clusters=clusters, rebalance=rebalance)
    spec = to_divided_policy(given, None, ALL)
    assert spec is not None
    ours = {entry["cluster"]: _preference(entry["preferences"]) for entry in spec["placement"]}
    theirs = {name: _preference(limits) for name, limits in (clusters or {"*": {"weight": 1}}).items()}
    before = plan_kubefed(Demand(total, ("a", "b", "c"), theirs, key="shop/web"), rebalance=rebalance).replicas
    demand = Demand(total, ("a", "b", "c"), ours, key="shop/web", current=before, avoid_disruption=not rebalance)
    after = (plan_replicas if rebalance else plan_nearest)(demand).replicas
    assert {name: after.get(name, 0) for name in before} == before


def _preference(limits: Object) -> Preference:
    return Preference(limits.get("weight", 0), limits.get("minReplicas", 0), limits.get("maxReplicas"))
