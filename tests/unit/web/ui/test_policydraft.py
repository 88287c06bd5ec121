"""A policy from a form: the manifest, and the field that is wrong."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.apimachinery.errors import ConfigurationError
from federation.web.ui.addclusterscreen import steps_of
from federation.web.ui.policydraft import to_draft

FORM = {"name": "web", "namespace": "shop", "mode": "Divide", "kind-Deployment": "1"}


def test_a_small_form_is_a_small_policy() -> None:
    draft = to_draft(FORM)
    assert draft.manifest == {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"schedulingMode": "Divide", "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]},
    }
    assert yaml.safe_load(draft.text) == draft.manifest


def test_every_field_has_its_place() -> None:
    form = {
        "name": "all", "namespace": " ", "mode": "Duplicate", "kind-Ingress": "1", "kind-Service": "1",
        "labels": "app=web, tier=", "clusters": "member-1=2,\nmember-2 = 1", "clusterlabels": "region=eu", "most": "3",
    }  # fmt: skip
    draft = to_draft(form)
    assert (draft.manifest["kind"], draft.manifest["metadata"]) == ("ClusterPropagationPolicy", {"name": "all"})
    matched = {"labelSelector": {"matchLabels": {"app": "web", "tier": ""}}}
    assert draft.manifest["spec"] == {
        "schedulingMode": "Duplicate",
        "resourceSelectors": [
            {"apiVersion": "v1", "kind": "Service", **matched},
            {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", **matched},
        ],
        "placement": [
            {"cluster": "member-1", "preferences": {"weight": 2}},
            {"cluster": "member-2", "preferences": {"weight": 1}},
        ],
        "clusterSelector": {"region": "eu"},
        "maxClusters": 3,
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": ""}, "Name: enter a value"),
        ({"name": "A b"}, "Name: 'A b'"),
        ({"namespace": "../x"}, "Namespace: "),
        ({"mode": "Explode"}, "How: "),
        ({"kind-Deployment": ""}, "Kinds: choose"),
        ({"labels": "app"}, "Labels of objects: 'app'"),
        ({"clusterlabels": "-=x"}, "Labels of clusters: "),
        ({"clusters": "a=0"}, "Clusters: '0'"),
        ({"clusters": "a=x"}, "Clusters: 'x'"),
        ({"clusters": "a, a"}, "occurs twice"),
        ({"clusters": "a=1, b"}, "give each of them a weight"),
        ({"clusters": "a b"}, "no name of a cluster"),
        ({"clusters": ",".join(f"c{number}" for number in range(201))}, "at most 200"),
        ({"most": "-1"}, "At most: "),
        ({"most": "٣"}, "At most: "),
        ({"most": "9" * 5000}, "At most: "),
    ],
)
def test_the_wrong_field_is_named(change: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says.replace("(", r"\(")):
        to_draft({**FORM, **change})


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(["name", "labels", "clusters", "clusterlabels", "most", "mode"]), st.text()))
def test_any_text_is_a_policy_or_a_message(change: dict[str, str]) -> None:
    try:
        draft = to_draft({**FORM, **change})
    except ConfigurationError:
        return
    assert yaml.safe_load(draft.text) == draft.manifest


def a_cluster(**states: str) -> dict[str, Any]:
    found = [{"type": type_, "status": status, "message": f"{type_} says"} for type_, status in states.items()]
    return {"metadata": {"name": "paris"}, "status": {"conditions": found}}


@pytest.mark.parametrize(
    ("cluster", "tones"),
    [
        (None, ["busy", "unknown", "unknown"]),
        ({"metadata": {"name": "paris"}}, ["good", "busy", "unknown"]),
        (a_cluster(Joined="False"), ["good", "busy", "unknown"]),
        (a_cluster(Joined="True"), ["good", "good", "busy"]),
        (a_cluster(Joined="True", Ready="False"), ["good", "good", "busy"]),
        (a_cluster(Joined="True", Ready="True"), ["good", "good", "good"]),
    ],
)
def test_the_progress_of_a_cluster_has_one_step_under_way(cluster: dict[str, Any] | None, tones: list[str]) -> None:
    assert [step.tone for step in steps_of(cluster)] == tones
