"""Webhook plugins of the schedule controller: the configurations in force, and the calls that their plugins ask for.

A SchedulerPluginWebhookConfiguration registers a plugin under its own name, an edit replaces it and a deletion takes it
away; the decision under way ends as it began. An installed plugin is never replaced by a webhook of the same name.
What is asked and what an answer means is `scheduling/webhook.py`'s matter; how bytes travel is the client's.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from federation.api import names
from federation.api.resources import Object
from federation.base.errors import PluginError
from federation.client.connection import Connection
from federation.client.outcalls import Answer
from federation.runtime.events import WARNING, Recorder
from federation.scheduling.engine import Engine
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.framework.types import PluginRequest, PluginResponse
from federation.scheduling.webhook import WebhookOptions, compile_for, with_webhooks


class Poster(Protocol):
    """Whoever can POST; `client.outcalls.Outcalls` over the network."""

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> Answer:
        """Return the answer, or why there is none; never raises."""
        ...


class RemoteCaller:
    """Makes the calls of remote plugins, all of one request at the same time."""

    def __init__(self, poster: Poster) -> None:
        self._poster = poster

    async def call(self, requests: Sequence[PluginRequest]) -> Sequence[PluginResponse]:
        """Return the responses in the order of the requests; never raises."""
        answers = await asyncio.gather(*map(self._post, requests))
        return [PluginResponse(answer.status, answer.body, answer.error) for answer in answers]

    async def _post(self, request: PluginRequest) -> Answer:
        tls = request.tls
        connection = Connection(
            request.url,
            ca_data=tls.ca_data,
            client_cert_data=tls.cert_data,
            client_key_data=tls.key_data,
            insecure=tls.insecure,
            tls_server_name=tls.server_name,
        )
        return await self._poster.post(connection, request.body, request.headers, timeout_s=request.timeout_s)


class WebhookPlugins:
    """Keeps the engine's plugins what the installed ones and the configurations say."""

    def __init__(self, engine: Engine, recorder: Recorder, on_change: Callable[[], None]) -> None:
        self._engine = engine
        self._installed: PluginRegistry = engine.registry
        self._recorder = recorder
        self._on_change = on_change
        self._webhooks: dict[str, WebhookOptions] = {}

    def on_configuration(self, old: Object | None, new: Object | None) -> None:
        """Take in an event of a configuration."""
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        name = (new if new is not None else old or {})["metadata"]["name"]
        before = self._webhooks.pop(name, None)
        if new is not None:
            try:
                self._webhooks[name] = compile_for(self._installed, new)
            except PluginError as error:
                self._recorder.event(new, WARNING, names.EVENT_WEBHOOK_CONFIGURATION_ERROR, str(error))
        if before == self._webhooks.get(name):
            return
        self._engine.use(with_webhooks(self._installed, self._webhooks.values()))
        self._on_change()
