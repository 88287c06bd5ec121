"""Each state in which there is no decision about an object has a sentence of its own."""

from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.undecided import undecided_reason

CONFIG = next(config for config in default_type_configs() if config["metadata"]["name"] == "deployments.apps")


def a_type(deleted: bool = False, controllers: Any = None, **annotations: str) -> FederatedType:
    metadata = {**CONFIG["metadata"], "annotations": annotations}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = CONFIG["spec"] if controllers is None else {**CONFIG["spec"], "controllers": controllers}
    return from_config({**CONFIG, "metadata": metadata, "spec": spec})


def a_source(namespace: str = "shop", annotations: Any = None, **metadata: Any) -> dict[str, Any]:
    head = {"name": "web", "namespace": namespace, "annotations": annotations or {}, **metadata}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": head}


POLICIES = PolicyIndex()
POLICIES.put(
    compile_policy({"kind": "PropagationPolicy", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}})
)
SELECTING = PolicyIndex()
SELECTING.put(
    compile_policy(
        {
            "kind": "ClusterPropagationPolicy",
            "metadata": {"name": "all"},
            "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]},
        }
    )
)
LABEL = {names.PROPAGATION_POLICY_LABEL: "web"}
PLACED = {"spec": {"placements": [{"controller": "mine", "placement": [{"cluster": "east"}]}]}}


@pytest.mark.parametrize(
    ("source", "type_", "federated", "policies", "text"),
    [
        (a_source(), None, None, POLICIES, "no FederatedTypeConfig covers its kind"),
        (a_source("kube-system"), a_type(), None, POLICIES, "so only a label with the name of a policy delivers"),
        (
            a_source(annotations={names.NO_FEDERATED_RESOURCE: "1"}),
            a_type(),
            None,
            POLICIES,
            f"annotation {names.NO_FEDERATED_RESOURCE}; remove the annotation",
        ),
        (a_source(labels=LABEL), a_type(), PLACED, POLICIES, "is in east; another controller than the scheduler"),
        (a_source(labels=LABEL), a_type(deleted=True), None, POLICIES, "deployments.apps is being deleted, so new"),
        (
            a_source(labels=LABEL),
            a_type(deleted=True, **{names.ORPHAN: "all"}),
            {},
            POLICIES,
            "is being deleted; create it again when it is gone",
        ),
        (a_source(labels=LABEL), a_type(controllers=[]), {}, POLICIES, "has no kubeadmiral.io/global-scheduler in"),
        (
            a_source(annotations={names.NO_SCHEDULING: "1"}, labels=LABEL),
            a_type(),
            {},
            POLICIES,
            f"its annotation {names.NO_SCHEDULING} forbids it; remove the annotation",
        ),
        (
            a_source(labels={names.PROPAGATION_POLICY_LABEL: "wbe"}),
            a_type(),
            {},
            POLICIES,
            "its label names PropagationPolicy shop/wbe, which does not exist",
        ),
        (a_source(labels=LABEL), a_type(), None, POLICIES, "PropagationPolicy shop/web applies to it, and the control"),
        (a_source(labels=LABEL), a_type(), {}, POLICIES, "PropagationPolicy shop/web applies to it, and its first"),
        (a_source(), a_type(), None, SELECTING, "ClusterPropagationPolicy all applies to it"),
        (a_source(), a_type(), {}, POLICIES, "no existing policy applies to it; name a policy in its label"),
        ({}, a_type(), None, POLICIES, "no existing policy applies to it; name a policy in its label"),
    ],
)
def test_every_state_has_its_own_sentence(
    source: Any, type_: FederatedType | None, federated: Any, policies: PolicyIndex, text: str
) -> None:
    assert text in undecided_reason(source, type_, federated, policies)


def test_an_object_that_may_follow_is_told_so() -> None:
    text = undecided_reason(a_source(), a_type(), None, PolicyIndex(), may_follow=True)
    assert text.endswith(f"or list it in the annotation {names.FOLLOWERS}")
