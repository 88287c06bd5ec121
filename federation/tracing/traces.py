"""Tracing, as the composition roots use it. Without an endpoint nothing is traced, and the SDK is not imported."""

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.http.asgi import ASGIApp
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers

_PATH = "/v1/traces"


class Traces:
    """The traces of one process.

    ConfigurationError for an endpoint that is no HTTP URL, and when the packages of the extra are missing.
    """

    def __init__(self, endpoint: str, clock: Clock, version: str) -> None:
        self._clock = clock
        self._is_enabled = bool(endpoint)
        if not endpoint:
            return
        url = to_url(endpoint)
        try:
            from federation.tracing import deliveries, requestspans, tracer  # noqa: PLC0415  # only if it is used
        except ImportError as error:
            raise ConfigurationError(
                f"otlp-endpoint: traces need packages that are not installed ({error.name}): pip install"
                f" 'federation[otel]'"
            ) from error
        self._tracer = tracer.Tracer(url, version)
        self._deliveries, self._requests = deliveries, requestspans

    def follow(self, objects: FederatedObjects, informers: Informers, leads: Callable[[], bool]) -> None:
        """Record the deliveries of these objects while `leads`."""
        if self._is_enabled:
            self._deliveries.Deliveries(objects, informers, self._tracer, leads, self._clock)

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return the app with spans of its requests."""
        return self._requests.traced(app, self._tracer, self._clock) if self._is_enabled else app

    async def close(self) -> None:
        """Send what is left."""
        if self._is_enabled:
            await asyncio.to_thread(self._tracer.close)


def to_url(endpoint: str) -> str:
    """Return where an endpoint receives traces; ConfigurationError unless it is an HTTP URL."""
    if urlsplit(endpoint).scheme not in ("http", "https"):
        raise ConfigurationError(f"otlp-endpoint: {endpoint!r} is not an http:// or https:// URL")
    return f"{endpoint.rstrip('/').removesuffix(_PATH)}{_PATH}"
