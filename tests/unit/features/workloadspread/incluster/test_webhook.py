"""The admission endpoints over HTTP."""

from collections.abc import AsyncIterator

import httpx
import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import Object
from federation.features.workloadspread.incluster import webhook
from federation.features.workloadspread.incluster.reviews import ReviewAnswer, Reviews


async def admit(request: Object) -> ReviewAnswer:
    return ReviewAnswer(warnings=(str(request["name"]),))


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    app = webhook.to_app(Reviews({"create-pod": admit}, ManualClock()), {"/create-pod": "create-pod"})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://a") as client:
        yield client


async def test_a_review_is_answered_at_its_path(client: httpx.AsyncClient) -> None:
    request = {"uid": "u-1", "name": "web", "object": {}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = await client.post("/create-pod", json=review)
    assert answer.status_code == 200
    assert answer.json()["response"] == {"uid": "u-1", "allowed": True, "warnings": ["web"]}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"request": {}}', b" " * (webhook.BODY_BYTES_MAX + 1)])
async def test_a_body_that_is_no_review_is_refused(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/create-pod", content=body)
    assert answer.status_code == 400
    assert answer.json()["kind"] == "Status"


async def test_health_and_metrics_are_served(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).text == "ok"
    metrics = (await client.get("/metrics")).text
    assert 'federation_spread_reviews_total{handler="create-pod",outcome="denied"}' in metrics
    assert (await client.get("/another")).status_code == 404
