"""Calls to the webhooks of Kubernetes' API: one POST of an AdmissionReview or ConversionReview, one parsed response.

Service references need the network inside a cluster, which this server does not have. `ServiceNetwork` reaches services
that run in this process; others fail with a message that says so. `apiserver/admission/webhooks.py` and
`apiserver/semantics/conversion` interpret the responses.
"""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import urlsplit

import orjson

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ApiError, ConfigurationError, WebhookFailed
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import WebhookClient

REVIEW_BYTES_MAX = 3 * 1024 * 1024
"""The largest response that kube-apiserver accepts from a webhook."""
_HEADERS = {"Content-Type": "application/json"}


class WebhookCaller(Protocol):
    """The network to webhooks."""

    async def call(self, client_config: Mapping[str, Any], review: Object, *, timeout_s: float) -> Any:
        """Send a review to the webhook of a `clientConfig` and return the parsed response; WebhookFailed."""
        ...


Answer = Callable[[str, Object], Awaitable[Any]]
"""Answers a review that was sent to a path; ApiError when it refuses to."""
AnswerAny = Callable[[str, str, Object], Awaitable[Any]]
"""Answers a review that was sent to a service, given by namespace and name; ApiError when it refuses to."""


class ServiceNetwork:
    """A `WebhookCaller` for a server with services in its process. Calls to URLs and other services go `outside`."""

    def __init__(self, outside: WebhookCaller | None = None) -> None:
        self._outside = outside
        self._services: dict[tuple[str, str], Answer] = {}
        self._others: AnswerAny | None = None

    def add(self, namespace: str, name: str, answer: Answer) -> None:
        """Answer calls to a service of the cluster."""
        self._services[namespace, name] = answer

    def add_others(self, answer: AnswerAny) -> None:
        """Answer calls to all services that were not added."""
        self._others = answer

    async def call(self, client_config: Mapping[str, Any], review: Object, *, timeout_s: float) -> Any:
        """Send the review and return the parsed response; WebhookFailed when there is none."""
        service = client_config.get("service") or {}
        namespace, name = str(service.get("namespace")), str(service.get("name"))
        answer = self._services.get((namespace, name))
        others = self._others if service else None
        if answer is None and others is None:
            if self._outside is None:
                raise WebhookFailed("this API server was started without a way to call webhooks")
            return await self._outside.call(client_config, review, timeout_s=timeout_s)
        try:
            if answer is not None:
                return await answer(str(service.get("path") or "/"), review)
            assert others is not None
            async with asyncio.timeout(timeout_s):
                return await others(namespace, name, review)
        except TimeoutError as error:
            raise WebhookFailed(f"service {namespace}/{name} did not answer within {timeout_s:g} s") from error
        except ApiError as error:
            raise WebhookFailed(error.message) from error


class HTTPWebhookCaller:
    """Calls webhooks by URL. The caller owns the client and closes it."""

    def __init__(self, client: WebhookClient) -> None:
        self._client = client

    async def call(self, client_config: Mapping[str, Any], review: Object, *, timeout_s: float) -> Any:
        """Send the review and return the parsed response; WebhookFailed when there is none."""
        url = _url(client_config)
        connection = _to_connection(url, client_config.get("caBundle") or "")
        response = await self._client.post(connection, orjson.dumps(review), _HEADERS, timeout_s=timeout_s)
        if response.is_timeout:
            raise WebhookFailed(f'Post "{url}": context deadline exceeded after {timeout_s:g}s')
        if response.error:
            raise WebhookFailed(f'Post "{url}": {response.error}')
        if response.status != 200:
            raise WebhookFailed(f'Post "{url}": the server answered {response.status}')
        try:
            return orjson.loads(response.body)
        except orjson.JSONDecodeError as error:
            raise WebhookFailed(f'Post "{url}": the answer is not JSON: {error}') from error


def _url(client_config: Mapping[str, Any]) -> str:
    if service := client_config.get("service"):
        name = f"{service.get('namespace')}/{service.get('name')}"
        raise WebhookFailed(
            f"service {name} cannot be reached: there is no cluster network here; give clientConfig.url instead"
        )
    url = str(client_config.get("url") or "")
    if urlsplit(url).scheme != "https":
        raise WebhookFailed(f"{url!r} is not an https URL")
    return url


@lru_cache(maxsize=32)
def _to_connection(url: str, bundle: str) -> Connection:
    """Return the connection that trusts only the bundle's authorities, or the system's without a bundle."""
    try:
        connection = Connection(url, ca_data=base64.b64decode(bundle, validate=True))
        connection.to_tls()  # a broken bundle fails here, with the name of the field
    except (binascii.Error, ConfigurationError) as error:
        raise WebhookFailed(f"caBundle holds no certificates: {error}") from error
    return connection
