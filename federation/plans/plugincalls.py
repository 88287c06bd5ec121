"""Calls of remote scheduler plugins: send the requests that the engine yields, and return it the responses.

The engine is pure; `drive` connects it with a caller, which sends the requests over HTTP. The decider drives one
decision, a plan many.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from federation.apimachinery.connection import Connection
from federation.client.retryingwebhookclient import RetryingWebhookClient, WebhookRequest
from federation.scheduling.framework.types import Exchange, PluginRequest, PluginResponse

T = TypeVar("T")


class PluginCaller(Protocol):
    """Calls remote plugins."""

    async def call(self, requests: Sequence[PluginRequest]) -> Sequence[PluginResponse]:
        """Make all calls concurrently and return the responses in the same order; never raises."""
        ...


async def drive(run: Exchange[T], caller: PluginCaller | None) -> tuple[T, bool]:
    """Return the result of the exchange, and whether it made any call; without a caller every call fails."""
    has_called = False
    try:
        requests = next(run)
        while True:
            has_called = True
            requests = run.send(await _call(requests, caller))
    except StopIteration as stop:
        result: T = stop.value
        return result, has_called


async def _call(requests: Sequence[PluginRequest], caller: PluginCaller | None) -> Sequence[PluginResponse]:
    if caller is None:
        return [PluginResponse(0, error="remote plugins are switched off")] * len(requests)
    return await caller.call(requests)


class RemoteCaller:
    """Makes the calls of remote plugins. Each plugin is a service with its own circuit breaker and limits."""

    def __init__(self, webhook_client: RetryingWebhookClient) -> None:
        self.webhook_client = webhook_client

    async def call(self, requests: Sequence[PluginRequest]) -> Sequence[PluginResponse]:
        """Return the responses in the order of the requests, all of one plugin; never raises."""
        if not requests:
            return []
        service = requests[0].plugin or urlsplit(requests[0].url).netloc
        answers = await self.webhook_client.send_all(service, [_to_call(request) for request in requests])
        return [PluginResponse(answer.status, answer.body, answer.error) for answer in answers]


def _to_call(request: PluginRequest) -> WebhookRequest:
    tls = request.tls
    connection = Connection(
        request.url,
        ca_data=tls.ca_data,
        client_cert_data=tls.cert_data,
        client_key_data=tls.key_data,
        insecure=tls.insecure,
        tls_server_name=tls.server_name,
    )
    return WebhookRequest(connection, request.body, request.headers, request.timeout_s, request.retries_max)
