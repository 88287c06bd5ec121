"""Calls of remote scheduler plugins: send the requests that the engine yields, and return it the responses.

The engine is pure; `drive` connects it with a caller, which sends the requests over HTTP. The decider drives one
decision, a plan many.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar
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


class Perform(Protocol):
    """Computes something somewhere else."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]:
        """Return what `work()` returns."""
        ...


async def drive(run: Exchange[T], caller: PluginCaller | None, perform: Perform | None = None) -> tuple[T, bool]:
    """Return the result of the exchange, and whether it made any call; without a caller every call fails.

    `perform` computes each part between two calls, in a thread for example.
    """
    has_called, responses = False, None
    while True:
        step = _advance(run, responses) if perform is None else await perform(partial(_advance, run, responses))
        if isinstance(step, _Result):
            return step.value, has_called
        has_called = True
        responses = await call_all(step, caller)


@dataclass(frozen=True, slots=True)
class _Result(Generic[T]):
    value: T


def _advance(run: Exchange[T], responses: Sequence[PluginResponse] | None) -> Sequence[PluginRequest] | _Result[T]:
    """Return the next requests, or the result. A StopIteration could not leave a thread."""
    try:
        return next(run) if responses is None else run.send(responses)
    except StopIteration as stop:
        return _Result(stop.value)


async def call_all(requests: Sequence[PluginRequest], caller: PluginCaller | None) -> Sequence[PluginResponse]:
    """Return the answers of a caller; without one every call fails."""
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
