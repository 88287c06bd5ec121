"""Annotations that override the policy, and invalid ones."""

import json
from typing import Any

import pytest

from federation.api import names
from federation.api.selectors import compile_cluster_terms
from federation.scheduling.annotationoverrides import (
    FORMS,
    ignored_annotations,
    overrides_from_annotations,
    without_overriding,
)
from federation.scheduling.framework.types import Toleration
from federation.scheduling.policyspec import Preferences, to_preferences

POLICY = to_preferences([{"cluster": "north", "preferences": {"weight": 7, "maxReplicas": 8, "minReplicas": 1}}])


def placements(*entries: Any) -> dict[str, str]:
    return {names.PLACEMENTS: json.dumps(entries)}


def preferences_of(*entries: Any) -> Preferences:
    preferences = overrides_from_annotations(placements(*entries), POLICY)["preferences"]
    assert isinstance(preferences, Preferences)
    return preferences


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (names.SCHEDULING_MODE, "Both"),
        (names.SCHEDULING_MODE, "divide"),
        (names.STICKY_CLUSTER, "yes"),
        (names.STICKY_CLUSTER, "True"),
        (names.CLUSTER_SELECTOR, '{"x": 1}'),
        (names.CLUSTER_SELECTOR, "[]"),
        (names.CLUSTER_SELECTOR, ""),
        (names.AFFINITY, "{"),
        (names.AFFINITY, "[]"),
        (names.AFFINITY, '{"clusterAffinity": []}'),
        (names.TOLERATIONS, "{nonsense"),
        (names.TOLERATIONS, "{}"),
        (names.TOLERATIONS, '["key"]'),
        (names.TOLERATIONS, '[{"key": 1}]'),
        (names.TOLERATIONS, '[{"tolerationSeconds": "1"}]'),
        (names.MAX_CLUSTERS, "-1"),
        (names.MAX_CLUSTERS, "few"),
        (names.MAX_CLUSTERS, " 1"),
        (names.MAX_CLUSTERS, "1_0"),
        (names.MAX_CLUSTERS, "٣"),
        (names.MAX_CLUSTERS, "1.0"),
        (names.MAX_CLUSTERS, "9223372036854775808"),
        (names.PLACEMENTS, '{"cluster": "east"}'),
        (names.PLACEMENTS, '["east"]'),
        (names.PLACEMENTS, '[{"cluster": 1}]'),
        (names.PLACEMENTS, '[{"cluster": "east", "preferences": []}]'),
        (names.PLACEMENTS, '[{"cluster": "east", "preferences": {"weight": "1"}}]'),
        (names.PLACEMENTS, '[{"cluster": "east", "preferences": {"weight": true}}]'),
        (names.PLACEMENTS, '[{"cluster": "east", "preferences": {"minReplicas": 1.5}}]'),
        (names.PLACEMENTS, '[{"cluster": "east", "preferences": {"priority": 9223372036854775808}}]'),
    ],
)
def test_a_value_of_another_type_than_the_policys_makes_the_annotation_count_for_nothing(key: str, text: str) -> None:
    assert overrides_from_annotations({key: text}, POLICY) == {}
    assert ignored_annotations({key: text, "other": "x"}) == {
        key: f"its value cannot be understood; write {FORMS[key]}"
    }


def test_affinity_is_read_as_strictly() -> None:
    for terms in ('"x"', '["x"]', '[{"matchExpressions": {}}]', '[{"matchFields": [{"key": 1}]}]'):
        required = f'{{"requiredDuringSchedulingIgnoredDuringExecution": {{"clusterSelectorTerms": {terms}}}}}'
        assert ignored_annotations({names.AFFINITY: f'{{"clusterAffinity": {required}}}'}), terms
    expression = '{"key": "a", "operator": "In", "values": "abc"}'
    for term in ('{"weight": "5"}', '{"weight": 5, "preference": []}', f'{{"matchExpressions": [{expression}]}}'):
        preferred = f'{{"preferredDuringSchedulingIgnoredDuringExecution": [{term}]}}'
        is_ignored = bool(ignored_annotations({names.AFFINITY: f'{{"clusterAffinity": {preferred}}}'}))
        assert is_ignored is ("weight" in term), term  # an unknown field is ignored


@pytest.mark.parametrize(
    ("key", "text", "fields"),
    [
        (names.CLUSTER_SELECTOR, "null", {"cluster_selector": ()}),
        (names.CLUSTER_SELECTOR, '{"b": null, "a": "x"}', {"cluster_selector": (("a", "x"), ("b", ""))}),
        (names.AFFINITY, "null", {"required": None, "preferred": ()}),
        (
            names.AFFINITY,
            '{"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}',
            {"required": compile_cluster_terms(()), "preferred": ()},
        ),
        (
            names.AFFINITY,
            '{"clusterAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [null, {"preference": {}}]}}',
            {"required": None, "preferred": ()},
        ),
        (names.TOLERATIONS, "null", {"tolerations": ()}),
        (names.TOLERATIONS, '[null, {"key": "a", "more": 1}]', {"tolerations": (Toleration(), Toleration("a"))}),
        (names.MAX_CLUSTERS, "+05", {"max_clusters": 5}),
        (names.MAX_CLUSTERS, "-0", {"max_clusters": 0}),
        (names.PLACEMENTS, "null", {"preferences": to_preferences([])}),
    ],
)
def test_null_is_empty(key: str, text: str, fields: dict[str, Any]) -> None:
    assert overrides_from_annotations({key: text}, POLICY) == fields
    assert ignored_annotations({key: text}) == {}


def test_names_of_fields_count_in_any_case() -> None:
    said = preferences_of({"Cluster": "east", "PREFERENCES": {"maxreplicas": 3, "Weight": 1}})
    assert said == Preferences(frozenset({"east"}), {}, {"east": 3}, {"east": 1}, {})
    affinity = {"ClusterAffinity": {"requiredduringschedulingignoredduringexecution": {"clusterselectorterms": []}}}
    assert overrides_from_annotations({names.AFFINITY: json.dumps(affinity)})["required"] == compile_cluster_terms(())


def test_placements_replace_the_policys_list_with_all_its_preferences() -> None:
    said = preferences_of({"cluster": "east", "preferences": {"priority": 3}}, {"cluster": "west"})
    assert said == Preferences(frozenset({"east", "west"}), {}, {}, {}, {"east": 3})


def test_a_negative_number_leaves_the_policys_values_of_that_preference_in_force() -> None:
    entries = (
        {"cluster": "east", "preferences": {"weight": 2, "maxReplicas": -1, "minReplicas": -5}},
        {"cluster": "west", "preferences": {"weight": 3, "maxReplicas": 5}},
        {"cluster": "east", "preferences": {"weight": 4}},
    )
    said = preferences_of(*entries)
    assert said.cluster_names == {"east", "west"}
    assert said.weights == {"east": 4, "west": 3}
    assert said.max_replicas == {"north": 8}, "the later entry of east does not take its limit back"
    assert said.min_replicas == {}, "the later entry of east has no minimum"
    assert ignored_annotations(placements(*entries)) == {
        names.PLACEMENTS: "the policy's maxReplicas hold, because a number here is negative"
    }


def test_of_a_cluster_that_is_listed_twice_the_last_number_counts_and_a_missing_minimum_is_zero() -> None:
    said = preferences_of(
        {"cluster": "east", "preferences": {"minReplicas": 2, "weight": -1, "priority": 1}},
        {"cluster": "east", "preferences": {"weight": 6}},
    )
    assert (said.min_replicas, said.weights, said.priorities) == ({}, {"east": 6}, {"east": 1})


def test_overriding_annotations_are_removed_for_restricted_tenants() -> None:
    annotations = {names.MAX_CLUSTERS: "1", names.STICKY_CLUSTER: "true", "other": "x"}
    federated = {"metadata": {"name": "web", "annotations": annotations}, "spec": {}}
    left, taken = without_overriding(federated)
    assert left["metadata"]["annotations"] == {"other": "x"}
    assert sorted(taken) == sorted((names.MAX_CLUSTERS, names.STICKY_CLUSTER))
    assert without_overriding(left) == (left, [])
