"""What acts on the host: the label decides, then our finalizer and policies; what a server made for itself is its own."""

import pytest

from federation.api import names
from federation.apimachinery.effect import Effect
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    API_SERVICES,
    CRDS,
    FLOW_SCHEMAS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)
from federation.planning.federatedobject.eligibility import exclusion
from federation.planning.federatedobject.hosteffect import ACTING, effect_on_host


@pytest.mark.parametrize(
    ("label", "is_selected", "is_held", "expected"),
    [
        (None, False, False, Effect.REACHABLE),
        (None, True, False, Effect.NONE),
        (None, False, True, Effect.NONE),
        ("true", True, True, Effect.ALL),
        ("false", False, False, Effect.NONE),
        ("maybe", False, False, Effect.REACHABLE),
    ],
)
def test_the_label_decides_before_policies(
    label: str | None, is_selected: bool, is_held: bool, expected: Effect
) -> None:
    metadata: Object = {"name": "one", "finalizers": [names.FEDERATE_FINALIZER] if is_held else []}
    if label is not None:
        metadata["labels"] = {names.ACTS_ON_HOST: label}
    for resource in ACTING:
        assert effect_on_host(resource, {"metadata": metadata}, is_selected=is_selected) is expected


def test_a_definition_converts_by_url_although_policies_select_it() -> None:
    held = {"metadata": {"name": "widgets.example.com", "finalizers": [names.FEDERATE_FINALIZER]}}
    assert effect_on_host(CRDS, held, is_selected=True) is Effect.REACHABLE


@pytest.mark.parametrize(
    ("resource", "name", "fields", "is_excluded"),
    [
        (API_SERVICES, "v1.apps", {"spec": {"group": "apps"}}, True),
        (API_SERVICES, "v1beta1.metrics.k8s.io", {"spec": {"service": {"name": "metrics"}}}, False),
        (FLOW_SCHEMAS, "exempt", {}, True),
        (FLOW_SCHEMAS, "tenants", {}, False),
        (VALIDATING_WEBHOOKS, names.HOST_WEBHOOKS, {}, True),
        (ADMISSION_POLICIES, "ours", {}, False),
    ],
)
def test_what_every_api_server_makes_is_not_federated(
    resource: Resource, name: str, fields: Object, is_excluded: bool
) -> None:
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, **fields}
    assert bool(exclusion(obj)) is is_excluded


def test_flow_schemas_that_the_server_keeps_up_to_date_are_its_own() -> None:
    annotations = {"apf.kubernetes.io/autoupdate-spec": "false"}
    metadata = {"name": "system-nodes", "annotations": annotations}
    obj = {"apiVersion": FLOW_SCHEMAS.api_version, "kind": FLOW_SCHEMAS.kind, "metadata": metadata}
    assert exclusion(obj) == "every Kubernetes cluster makes its own"
