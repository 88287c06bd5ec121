"""A federated object with an invalid template causes one event and does not affect other objects."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.delivery.rules.names import EVENT_INVALID_TEMPLATE


def a_federated_object(metadata: Any) -> dict[str, Any]:
    """Return a placed federated object that no controller could have created."""
    placement = [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]
    annotations = {names.POD_UNSCHEDULABLE_THRESHOLD: "10s", names.PENDING_CONTROLLERS: "[]"}
    return {
        "apiVersion": FEDERATED_OBJECTS.api_version,
        "kind": "FederatedObject",
        "metadata": {"name": "broken", "namespace": "default", "annotations": annotations},
        "spec": {"template": {**a_deployment("web"), "metadata": metadata}, "placements": placement},
    }


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ("web", "metadata"),
        (None, "metadata"),
        ({"name": 7}, "metadata.name"),
        ({"labels": {}}, "metadata.name"),
        ({"name": "web", "labels": "a=b"}, "metadata.labels"),
    ],
)
async def test_invalid_metadata_causes_one_event_and_no_retries(
    metadata: Any, field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with a_world() as world:
        await world.create(FEDERATED_OBJECTS, a_federated_object(metadata))
        await world.pass_time(60)
        (message,) = [message for reason, message in await world.events() if reason == EVENT_INVALID_TEMPLATE]
        await world.user.delete(FEDERATED_OBJECTS, "broken", "default")
        assert message.startswith(f"spec.template.{field}: ")
        printed = capsys.readouterr().out
        assert "reconcile failed" not in printed
        assert "handler failed" not in printed


async def test_a_new_type_is_handled_despite_an_invalid_object(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with a_world() as world:
        config = await world.user.get(FEDERATED_TYPE_CONFIGS, DEPLOYMENTS.group_resource)
        await world.user.delete(FEDERATED_TYPE_CONFIGS, DEPLOYMENTS.group_resource)
        await world.until_gone(FEDERATED_TYPE_CONFIGS, DEPLOYMENTS.group_resource)
        await world.create(FEDERATED_OBJECTS, a_federated_object("web"))
        await world.settle()
        metadata = {"name": config["metadata"]["name"]}
        await world.create(FEDERATED_TYPE_CONFIGS, {**config, "metadata": metadata, "status": {}})
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("api", replicas=2))
        await world.until_replicas("api", {"east": 2})
        assert "handler failed" not in capsys.readouterr().out
        await world.user.delete(FEDERATED_OBJECTS, "broken", "default")
