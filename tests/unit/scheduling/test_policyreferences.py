"""Warnings about clusters, kinds and other policies that a policy refers to."""

from typing import Any

import pytest

from federation.apimachinery.resources import GroupKind
from federation.scheduling.policyreferences import reference_warnings

KINDS = frozenset({GroupKind("apps", "Deployment")})
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}


def _policy(name: str = "mine", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, "spec": spec}


def _warnings(policy: dict[str, Any], *others: dict[str, Any]) -> list[str]:
    return reference_warnings(policy, {"east": {"tier": "test"}, "north": {}}, KINDS, others)


def test_clusters_that_do_not_exist_are_named_with_their_field() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["east", "wset"]}]}
    gone = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["gone"]}]}
    policy = _policy(
        placement=[{"cluster": "east"}, {"cluster": "esat"}],
        clusterAffinity=[term, gone],
        overrideRules=[{"targetClusters": {"clusters": ["nroth"], "clusterAffinity": [term]}}, {}],
        rollout={"waves": [{"name": "canary", "clusters": ["east", "eats"]}, {"name": "rest"}]},
    )
    assert _warnings(policy) == [
        "spec.placement[1].cluster: there is no FederatedCluster 'esat'",
        "spec.overrideRules[0].targetClusters.clusters[0]: there is no FederatedCluster 'nroth'",
        "spec.overrideRules[0].targetClusters.clusterAffinity[0].matchFields[0]: there is no FederatedCluster 'wset'",
        "spec.rollout.waves[0].clusters[1]: there is no FederatedCluster 'eats'",
        "spec.clusterAffinity[0].matchFields[0]: there is no FederatedCluster 'wset'",
    ]


def test_names_in_another_case_are_found_where_they_are_resolved() -> None:
    policy = _policy(
        placement=[{"cluster": "East"}],
        overrideRules=[{"targetClusters": {"clusters": ["EAST"]}}],
        rollout={"waves": [{"name": "canary", "clusters": ["East"]}]},
    )
    assert _warnings(policy) == [
        "spec.rollout.waves[0].clusters[0]: there is no FederatedCluster 'East'; did you mean 'east'?"
    ]


def test_a_star_is_no_cluster_that_is_missing() -> None:
    assert reference_warnings({"spec": {"placement": [{"cluster": "*"}]}}, {}, frozenset()) == []


@pytest.mark.parametrize(
    ("spec", "wave", "is_warned"),
    [
        ({}, {"clusters": ["east"]}, False),
        ({"placement": [{"cluster": "east"}]}, {"clusters": ["east", "north"]}, False),
        ({"placement": [{"cluster": "north"}]}, {"clusters": ["east"]}, True),
        ({"placement": [{"cluster": "*"}]}, {"clusters": ["east"]}, False),
        ({"clusterSelector": {"tier": "test"}}, {"clusters": ["north"]}, True),
        (
            {"clusterAffinity": [{"matchExpressions": [{"key": "tier", "operator": "Exists"}]}]},
            {"clusters": ["north"]},
            True,
        ),
        ({}, {"clusterSelector": {"tier": "prod"}}, True),
        ({}, {"clusterSelector": {"tier": "prod"}, "gate": {"ready": False}}, False),
        ({}, {"clusterSelector": {"tier": "prod"}, "gate": {"ready": False}, "pause": True}, True),
        ({}, {"share": 10}, False),
    ],
)
def test_a_wave_that_no_workload_of_the_policy_can_fill_is_named(
    spec: dict[str, Any], wave: dict[str, Any], is_warned: bool
) -> None:
    found = _warnings(_policy(**spec, rollout={"waves": [{"name": "canary", **wave}]}))
    expected = (
        "spec.rollout.waves[0]: no cluster of wave canary can have the workload, so it holds every rollout until it is"
        " approved"
    )
    assert found == ([expected] if is_warned else [])
    (taking,) = _warnings(
        _policy(rollout={"waves": [{"name": "a", "clusterSelector": {"x": ""}, "whenEmpty": "TakeFirst"}]})
    )
    assert "takes the first clusters instead" in taking


def test_a_kind_that_is_not_federated_is_named() -> None:
    (warning,) = _warnings(_policy(resourceSelectors=[DEPLOYMENT, {**DEPLOYMENT, "kind": "Deploymnet"}]))
    assert warning.startswith("spec.resourceSelectors[1]: Deploymnet in apps/v1 is not federated")


@pytest.mark.parametrize(
    ("other", "is_competing"),
    [
        (DEPLOYMENT, True),
        ({**DEPLOYMENT, "name": "web"}, True),
        ({**DEPLOYMENT, "name": "api"}, False),
        ({**DEPLOYMENT, "labelSelector": {"matchLabels": {"tier": "a"}}}, True),
        ({**DEPLOYMENT, "labelSelector": {"matchLabels": {"tier": "b"}}}, False),
        ({**DEPLOYMENT, "labelSelector": {"matchLabels": {"app": "b"}}}, True),
        ({"apiVersion": "apps/v1", "kind": "StatefulSet"}, False),
    ],
)
def test_policies_that_may_select_the_same_objects_compete(other: dict[str, Any], is_competing: bool) -> None:
    mine = {**DEPLOYMENT, "name": "web", "labelSelector": {"matchLabels": {"tier": "a"}}}
    found = _warnings(_policy(resourceSelectors=[mine]), _policy("other", resourceSelectors=[other]))
    assert bool(found) is is_competing


def test_the_warning_names_the_policy_that_applies() -> None:
    mine = _policy(resourceSelectors=[DEPLOYMENT])
    others = [
        _policy("zeta", resourceSelectors=[DEPLOYMENT]),
        _policy("alpha", resourceSelectors=[DEPLOYMENT]),
        _policy("all", "", resourceSelectors=[DEPLOYMENT]),
    ]
    found = _warnings(mine, mine, *others)
    assert [("this one" in text, text.split('"')[1]) for text in found] == [
        (False, "alpha"),
        (True, "zeta"),
        (True, "all"),
    ]
    assert 'ClusterPropagationPolicy "all"' in found[2]


def test_many_warnings_are_counted() -> None:
    found = _warnings(_policy(placement=[{"cluster": f"c{number}"} for number in range(300)]))
    assert len(found) == 11
    assert found[-1] == "and 290 more warnings of this kind"
