"""Which new objects the API server holds: those that a policy selects."""

from typing import Any

import pytest
from tests.unit.controllers.federate.test_federate import a_deployment
from tests.unit.controllers.hosting import SHIPPED, Host

from federation.api import names
from federation.api.federatedtype import from_config
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import Resource
from federation.controllers.federate.policyselection import PolicySelection

DEPLOYMENT = from_config(SHIPPED["Deployment"])


def a_policy(resource: Resource, *selectors: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "p", **({"namespace": namespace} if resource.namespaced else {})},
        "spec": {
            "schedulingMode": "Duplicate",
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", **each} for each in selectors],
        },
    }


async def created(host: Host, policy: dict[str, Any], resource: Resource) -> PolicySelection:
    selection = PolicySelection(host.informers)
    await selection.wait_synced()
    await host.user.create(resource, policy)
    informer = host.informers.for_resource(resource)
    await host.until(lambda: informer.get(policy["metadata"].get("namespace", ""), "p"))
    return selection


def labelled(**labels: str) -> dict[str, Any]:
    return a_deployment(labels=labels)


@pytest.mark.parametrize(
    ("selector", "source", "is_expected"),
    [
        ({}, a_deployment(), True),
        ({"name": "web"}, a_deployment(), True),
        ({"name": "other"}, a_deployment(), False),
        ({"labelSelector": {"matchLabels": {"tier": "front"}}}, labelled(tier="front"), True),
        ({"labelSelector": {"matchLabels": {"tier": "front"}}}, labelled(tier="back"), False),
        ({"kind": "StatefulSet"}, a_deployment(), False),
        ({}, a_deployment(namespace="elsewhere"), False),
    ],
)
async def test_a_policy_of_the_namespace_selects(
    host: Host, selector: dict[str, Any], source: dict[str, Any], is_expected: bool
) -> None:
    selection = await created(host, a_policy(PROPAGATION_POLICIES, selector), PROPAGATION_POLICIES)
    assert selection.expects_placement(DEPLOYMENT, source) is is_expected


async def test_a_cluster_policy_selects_in_every_namespace(host: Host) -> None:
    policy = a_policy(CLUSTER_PROPAGATION_POLICIES, {})
    selection = await created(host, policy, CLUSTER_PROPAGATION_POLICIES)
    assert selection.expects_placement(DEPLOYMENT, a_deployment(namespace="elsewhere"))


async def test_changed_and_deleted_policies_are_followed(host: Host) -> None:
    selection = await created(host, a_policy(PROPAGATION_POLICIES, {"name": "web"}, {}), PROPAGATION_POLICIES)
    assert selection.expects_placement(DEPLOYMENT, a_deployment("other"))
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
    await host.merge(PROPAGATION_POLICIES, "p", {"spec": {"resourceSelectors": selectors}}, "default")
    await host.until(lambda: not selection.expects_placement(DEPLOYMENT, a_deployment("other")))
    assert selection.expects_placement(DEPLOYMENT, a_deployment())
    await host.user.delete(PROPAGATION_POLICIES, "p", "default")
    await host.until(lambda: not selection.expects_placement(DEPLOYMENT, a_deployment()))


async def test_a_label_that_names_a_policy_is_enough(host: Host) -> None:
    selection = PolicySelection(host.informers)
    assert not selection.expects_placement(DEPLOYMENT, a_deployment())
    for label in (names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL):
        assert selection.expects_placement(DEPLOYMENT, labelled(**{label: "p"}))


async def test_namespaces_are_expected_without_a_policy(host: Host) -> None:
    selection = PolicySelection(host.informers)
    assert selection.expects_placement(from_config(SHIPPED["Namespace"]), {"metadata": {"name": "shop"}})
