"""Which objects with a controller are federated."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.federatedobject.eligibility import exclusion


def an_object(kind: str, api_version: str, **labels: str) -> dict[str, Any]:
    owner = {"apiVersion": api_version, "kind": kind, "name": "a", "uid": "u", "controller": True}
    metadata = {"name": "web", "namespace": "shop", "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_workloads_of_a_united_deployment_are_made_on_the_host_for_the_policies(version: str) -> None:
    assert exclusion(an_object("UnitedDeployment", f"apps.kruise.io/{version}")) == ""


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [("Deployment", "apps/v1"), ("UnitedDeployment", "example.com/v1"), ("CloneSet", "apps.kruise.io/v1alpha1")],
)
def test_what_another_controller_makes_needs_the_label_of_a_policy(kind: str, api_version: str) -> None:
    assert "controller makes it" in exclusion(an_object(kind, api_version))
    assert exclusion(an_object(kind, api_version, **{names.PROPAGATION_POLICY_LABEL: "all"})) == ""
