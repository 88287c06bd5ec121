"""Warnings about policies that are valid but hardly intended."""

from typing import Any

import pytest

from federation.scheduling.framework.profile import DEFAULT_PROFILE, apply_profile
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.policywarnings import policy_warnings, profile_warnings

A_LABEL = {"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"maxClusters": 1, "clusterAffinity": [A_LABEL], "tolerations": [{"operator": "Exists"}, {"key": "a"}]},
        {
            "placement": [
                {"cluster": "a", "preferences": {"minReplicas": 1, "maxReplicas": 1, "weight": 0}},
                *[{"cluster": "b", "preferences": {"weight": 1}}],
            ]
        },
        {"placement": [{"cluster": "a", "preferences": {"weight": 0, "priority": 1}}], "replicasStrategy": "Binpack"},
        {"schedulingMode": "Duplicate", "placement": [{"cluster": "a", "preferences": {"weight": 0}}]},
        {"schedulingMode": "Divide", "replicasStrategy": "Binpack", "placement": None, "tolerations": None},
        {"clusterAffinity": [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]}]},
    ],
)
def test_plausible_policies_have_no_warning(spec: dict[str, Any]) -> None:
    assert policy_warnings({"spec": spec}) == []


@pytest.mark.parametrize(
    ("spec", "doubt"),
    [
        (
            {"clusterAffinity": [A_LABEL, {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}]},
            "spec.clusterAffinity[1] matches no cluster: a: In needs at least one value",
        ),
        ({"clusterAffinity": [{}]}, "spec.clusterAffinity[0] matches no cluster: it has no expression"),
        (
            {"clusterAffinity": [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["y"]}]}]},
            "spec.clusterAffinity[0] matches no cluster: 'spec.x' is not a valid field: only metadata.name is",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Is"}]},
            "spec.tolerations[0].operator: 'Is' is neither Exists nor Equal, so it tolerates nothing",
        ),
        (
            {"tolerations": [{"value": "a"}]},
            "spec.tolerations[0].key is empty: it tolerates every taint with its value; write operator Exists or a key",
        ),
        (
            {"tolerations": [{"key": "a", "effect": "Never"}]},
            (
                "spec.tolerations[0].effect: 'Never' is none of NoSchedule, PreferNoSchedule, NoExecute,"
                " so it tolerates nothing"
            ),
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            (
                "spec.tolerations[0].value: with operator Exists every value is tolerated;"
                " leave it out, as Kubernetes demands"
            ),
        ),
        (
            {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]},
            "spec.tolerations[0].tolerationSeconds: it counts for NoExecute alone; leave it out for NoSchedule",
        ),
        (
            {"placement": [{"cluster": "a"}, {"cluster": "a"}]},
            "spec.placement[1].cluster: a is listed twice, and the later preferences count",
        ),
        (
            {"placement": [{"cluster": "a", "preferences": {"minReplicas": 5, "maxReplicas": 3}}]},
            "spec.placement[0].preferences: minReplicas 5 is more than maxReplicas 3",
        ),
        (
            {
                "schedulingMode": "Divide",
                "placement": [{"cluster": "a", "preferences": {"weight": 0}}, {"cluster": "b"}],
            },
            "spec.placement: every weight is 0, so clusters get their minReplicas and no more; leave the weights out",
        ),
        ({"maxClusters": 0}, "spec.maxClusters: 0 lets nothing be placed; leave it out for no limit"),
        (
            {"schedulingMode": "Duplicate", "replicasStrategy": "Binpack"},
            "spec.replicasStrategy: Binpack divides replicas, and schedulingMode Duplicate divides none",
        ),
    ],
)
def test_a_warning_names_the_field_and_the_effect(spec: dict[str, Any], doubt: str) -> None:
    assert policy_warnings({"spec": spec}) == [doubt]


@pytest.mark.parametrize(
    ("spec", "doubts"),
    [
        ({}, []),
        ({"plugins": {"filter": {"enabled": [{"name": "my-webhook"}]}}}, []),
        ({"pluginConfig": [{"name": "PreferenceBinPack", "args": {"capacity": "Sums"}}]}, []),
        ({"pluginConfig": [{"name": "MaxCluster"}, {"name": "TaintToleration", "args": None}]}, []),
        (
            {"plugins": {"filter": {"disabled": [{"name": "*"}], "enabled": [{"name": "ClusterReady"}]}}},
            [],
        ),
        (
            {"plugins": {"filter": {"enabled": [{"name": "ClusterReady"}]}}},
            ["spec.plugins.filter.enabled: ClusterReady runs there already; disable it to change its place"],
        ),
        (
            {"pluginConfig": [{"name": "ClusterCapacityWeigth", "args": {}}]},
            ["spec.pluginConfig[0]: ClusterCapacityWeigth does not run in this profile"],
        ),
        (
            {"pluginConfig": [{"name": "ClusterCapacityWeight", "args": []}]},
            ["spec.pluginConfig[0].args: write an object"],
        ),
        (
            {"plugins": {"select": {"enabled": [{"name": "ClusterReady"}]}}},
            ["spec.plugins.select.enabled[0].name: ClusterReady does not run here; enable it in filter"],
        ),
        (
            {"pluginConfig": [{"name": "PreferenceBinPack", "args": {"size": 1}}]},
            [
                "spec.pluginConfig[0].args: plugin 'PreferenceBinPack' rejects its arguments: unknown argument size",
            ],
        ),
    ],
)
def test_an_invalid_profile_is_reported_with_the_field(spec: dict[str, Any], doubts: list[str]) -> None:
    source = {"metadata": {"name": "p"}, "spec": spec}
    assert profile_warnings(source, apply_profile(DEFAULT_PROFILE, source), load_plugins()) == doubts
