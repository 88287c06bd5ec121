"""Webhooks of simulated members: a service with a ready pod answers, one without makes the call fail."""

from typing import Any

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import BadRequest, WebhookFailed
from federation.apimachinery.resources import ENDPOINT_SLICES, SERVICES, Object
from federation.apimachinery.webhooks import ServiceNetwork
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.simulator.podwebhooks import PodWebhooks

CONFIG = {"service": {"namespace": "default", "name": "webhook"}}
ADMISSION = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1"}}


async def a_network(*, has_service: bool = True, is_ready: bool | None = True) -> ServiceNetwork:
    """Return the services of a member with one Service; `is_ready` is None for one without endpoints."""
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.start()
    client = LocalClient(registry, user_agent="test")
    if has_service:
        metadata: Object = {"name": "webhook", "namespace": "default"}
        await client.create(SERVICES, {"metadata": metadata, "spec": {"ports": [{"port": 443}]}})
    if is_ready is not None:
        metadata = {"name": "one", "namespace": "default", "labels": {"kubernetes.io/service-name": "webhook"}}
        endpoint = {"addresses": ["10.0.0.1"], "conditions": {"ready": is_ready}}
        slice_ = {"metadata": metadata, "addressType": "IPv4", "endpoints": [endpoint]}
        await client.create(ENDPOINT_SLICES, slice_)
    network = ServiceNetwork()
    network.add_others(PodWebhooks(client).answer)
    return network


async def test_a_ready_pod_allows_every_request() -> None:
    answer = await (await a_network()).call(CONFIG, ADMISSION, timeout_s=1)
    assert answer == {
        **{key: ADMISSION[key] for key in ("apiVersion", "kind")},
        "response": {"uid": "1", "allowed": True},
    }


async def test_a_ready_pod_converts_by_a_new_version() -> None:
    request = {"uid": "2", "desiredAPIVersion": "example.com/v1", "objects": [{"apiVersion": "example.com/v1beta1"}]}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    answer = await (await a_network()).call(CONFIG, review, timeout_s=1)
    assert answer["response"]["convertedObjects"] == [{"apiVersion": "example.com/v1"}]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"has_service": False, "is_ready": None}, 'service "webhook" not found'),
        ({"is_ready": None}, 'no endpoints available for service "webhook"'),
        ({"is_ready": False}, 'no endpoints available for service "webhook"'),
    ],
)
async def test_without_a_ready_pod_the_call_fails_as_in_a_cluster(options: dict[str, Any], text: str) -> None:
    network = await a_network(**options)
    with pytest.raises(WebhookFailed, match=text):
        await network.call(CONFIG, ADMISSION, timeout_s=1)


async def test_other_reviews_are_refused() -> None:
    network = await a_network()
    with pytest.raises(WebhookFailed, match="does not answer") as failed:
        await network.call(CONFIG, {**ADMISSION, "kind": "TokenReview"}, timeout_s=1)
    assert isinstance(failed.value.__cause__, BadRequest)


async def test_addresses_are_not_answered_by_pods() -> None:
    with pytest.raises(WebhookFailed, match="without a way to call webhooks"):
        await (await a_network()).call({"url": "https://example.com/"}, ADMISSION, timeout_s=1)
