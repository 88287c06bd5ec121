"""Admission webhooks over HTTPS: one POST of an AdmissionReview, one parsed answer.

The connection is made for the call and closed after it: webhooks are rare and their servers come and go. The HTTP
library is loaded at the first call. Service references need the network inside a cluster, which this server does not
have; they fail with a text that says so. What the answer means is `registry/admission`'s matter.
"""

import asyncio
import base64
import binascii
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import orjson

from federation.api.resources import Object
from federation.registry.admission.webhooks import WebhookFailed

_ANSWER_BYTES_MAX = 3 * 1024 * 1024
_CONTEXTS_MAX = 32


class HTTPWebhookCaller:
    """Calls webhooks by their URL; holds nothing, so there is nothing to close."""

    async def call(self, client_config: Mapping[str, Any], review: Object, *, timeout_s: float) -> Any:
        """Send the review and return the parsed answer; WebhookFailed for every way in which there is none."""
        import httpx  # noqa: PLC0415  # only servers with webhooks need an HTTP client for them

        url = _url(client_config)
        try:
            async with (
                asyncio.timeout(timeout_s),
                httpx.AsyncClient(
                    verify=_context(client_config.get("caBundle") or ""), timeout=timeout_s, trust_env=False
                ) as client,
                client.stream(
                    "POST", url, content=orjson.dumps(review), headers={"Content-Type": "application/json"}
                ) as response,
            ):
                body = await _read(response.aiter_bytes(), url)
                if response.status_code != 200:
                    raise WebhookFailed(f'Post "{url}": the server answered {response.status_code}')
        except (TimeoutError, httpx.TimeoutException) as error:
            raise WebhookFailed(f'Post "{url}": context deadline exceeded after {timeout_s:g}s') from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise WebhookFailed(f'Post "{url}": {error or type(error).__name__}') from error
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise WebhookFailed(f'Post "{url}": the answer is not JSON: {error}') from error


async def _read(chunks: Any, url: str) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > _ANSWER_BYTES_MAX:
            raise WebhookFailed(f'Post "{url}": the answer is larger than {_ANSWER_BYTES_MAX} bytes')
    return bytes(body)


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


@lru_cache(_CONTEXTS_MAX)
def _context(bundle: str) -> ssl.SSLContext:
    """Return how to trust: only the bundle's authorities, or the system's when there is none."""
    if not bundle:
        return ssl.create_default_context()
    try:
        context = ssl.create_default_context(cadata=base64.b64decode(bundle, validate=True).decode("ascii"))
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
        raise WebhookFailed(f"caBundle holds no certificates: {error}") from error
    # Private authorities are often made without the extensions that the strict reading of RFC 5280 wants.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
