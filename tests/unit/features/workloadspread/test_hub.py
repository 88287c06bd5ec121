"""Conversion of whole WorkloadSpreads."""

from federation.features.workloadspread.rules.hub import to_hub

OLD = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "WorkloadSpread",
    "metadata": {"name": "ws"},
    "spec": {
        "subsets": [{"name": "a", "requiredNodeSelectorTerm": {}, "preferredNodeSelectorTerms": []}, {"name": "b"}]
    },
}


def test_an_object_is_converted_once() -> None:
    hub = to_hub(OLD)
    assert hub["apiVersion"] == "apps.kruise.io/v1beta1"
    assert hub["spec"]["subsets"][0] == {"name": "a", "requiredNodeSelector": {}, "preferredNodeSelector": []}
    assert to_hub(hub) == hub


def test_a_field_in_the_new_spelling_wins() -> None:
    subset = {"name": "a", "requiredNodeSelector": {"matchFields": []}, "requiredNodeSelectorTerm": {}}
    assert to_hub({"spec": {"subsets": [subset]}})["spec"]["subsets"] == [
        {"name": "a", "requiredNodeSelector": {"matchFields": []}}
    ]


def test_conditions_of_all_entries_get_a_reason() -> None:
    plain, entry = [{"name": "b"}], [{"name": "a", "conditions": [{"type": "Schedulable", "status": "True"}]}]
    status = {"subsetStatuses": entry, "versionedSubsetStatuses": {"v1": entry, "v2": plain, "v3": None}}
    converted = to_hub({**OLD, "status": status})["status"]
    with_reason = [{"name": "a", "conditions": [{"type": "Schedulable", "status": "True", "reason": "Unknown"}]}]
    assert converted["subsetStatuses"] == with_reason
    assert converted["versionedSubsetStatuses"] == {"v1": with_reason, "v2": plain, "v3": []}


def test_an_object_without_spec_and_status_is_converted() -> None:
    assert to_hub({"spec": None, "status": None})["apiVersion"] == "apps.kruise.io/v1beta1"
    assert to_hub({"status": {"observedGeneration": 1}})["status"] == {"observedGeneration": 1}
