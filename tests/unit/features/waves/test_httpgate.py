"""The requests of gates: one per interval, each answer counts until the next one."""

from collections.abc import Mapping

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.webhookclient import WebhookResponse
from federation.features.waves.httpgate import HTTPGate
from federation.planning.waves.waverules import HTTPCheck
from federation.runtime.controller import Key

CHECK = HTTPCheck("https://slo.example/ok", 204, 3.0)
KEY = Key("default", "web-deployments.apps")


class Service:
    """A network with one server, whose answer can be changed."""

    def __init__(self) -> None:
        self.answer = WebhookResponse(204)
        self.requests: list[tuple[str, float]] = []

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        assert headers
        self.requests.append((connection.server, timeout_s))
        return self.answer


async def test_an_answer_counts_for_ten_seconds() -> None:
    service, clock = Service(), ManualClock()
    gate = HTTPGate(service, clock)
    assert await gate.problem(KEY, CHECK) == ""
    service.answer = WebhookResponse(503, is_listed=True)
    await clock.advance(9.9)
    assert await gate.problem(KEY, CHECK) == ""
    await clock.advance(0.1)
    assert await gate.problem(KEY, CHECK) == "HTTP status 503"
    assert service.requests == [("https://slo.example/ok", 3.0)] * 2


async def test_workloads_and_checks_do_not_share_answers() -> None:
    service = Service()
    gate = HTTPGate(service, ManualClock())
    await gate.problem(KEY, CHECK)
    service.answer = WebhookResponse(0, error="cannot connect to slo.example:443: Connection refused", is_listed=True)
    assert "Connection refused" in await gate.problem(Key("default", "other"), CHECK)
    assert "Connection refused" in await gate.problem(KEY, HTTPCheck(CHECK.url, 200))
    gate.forget(KEY)
    assert "Connection refused" in await gate.problem(KEY, CHECK)


@pytest.mark.parametrize("answer", [WebhookResponse(503), WebhookResponse(0, error="Connection refused")])
async def test_only_answers_of_listed_networks_are_told(answer: WebhookResponse) -> None:
    service = Service()
    service.answer = answer
    assert await HTTPGate(service, ManualClock()).problem(KEY, CHECK) == "the gate did not hold"
