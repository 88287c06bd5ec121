"""Webhook plugins of the schedule controller: their registration, and their HTTP calls.

A SchedulerPluginWebhookConfiguration registers a plugin under its own name, an edit replaces it, and a deletion removes
it; a decision in progress keeps the plugins it started with. An installed plugin is never replaced by a webhook of the
same name. Payloads are in `scheduling/webhooks`, transport is in the client. Read `pluginoutages.py` next.
"""

from collections.abc import Callable
from dataclasses import replace

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.controllers.schedule import names
from federation.runtime.events import NORMAL, WARNING, Recorder
from federation.scheduling.engine import Engine
from federation.scheduling.framework.registry import PluginRegistry
from federation.scheduling.webhooks.configuration import WebhookOptions, decisive_hash, unusable
from federation.scheduling.webhooks.factory import admit, with_webhooks


def _tls_problem(options: WebhookOptions) -> str:
    """Return the problem of invalid credentials, "" for none, so that it is reported before a call needs them."""
    tls, authorities = options.tls, Connection("https://", ca_data=options.tls.ca_data)
    try:
        authorities.to_tls()
    except ConfigurationError:
        return "tlsConfig.caData is no PEM certificate"
    try:
        replace(authorities, client_cert_data=tls.cert_data, client_key_data=tls.key_data).to_tls()
    except ConfigurationError:
        return "tlsConfig.certData and keyData are not a PEM certificate and its unencrypted key"
    return ""


class WebhookPlugins:
    """Updates the engine's plugin registry from the configurations.

    `on_change` receives a plugin's name, the hash of its decisive settings ("" when the plugin is unusable or removed),
    and the fields of the object that it declares.
    """

    def __init__(
        self, engine: Engine, recorder: Recorder, on_change: Callable[[str, str, frozenset[str]], None]
    ) -> None:
        self._engine = engine
        self._installed: PluginRegistry = engine.registry
        self._recorder = recorder
        self._on_change = on_change
        self._webhooks: dict[str, WebhookOptions] = {}

    def on_configuration(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of a configuration."""
        if old is not None and new is not None and old.get("spec") == new.get("spec"):
            return
        name = (new if new is not None else old or {})["metadata"]["name"]
        before, decisive = self._webhooks.pop(name, None), ""
        if new is not None:
            options, problem = admit(self._installed, new)
            if options is not None and not problem and (problem := _tls_problem(options)):
                problem = f"webhook {name!r}: {problem}"
                options = unusable(new, problem)
            if options is not None:
                self._webhooks[name] = options
            if problem:
                self._recorder.event(new, WARNING, names.EVENT_WEBHOOK_CONFIGURATION_ERROR, problem)
            else:
                decisive = decisive_hash(new)
        if before == self._webhooks.get(name):
            return
        self._engine.use(with_webhooks(self._installed, self._webhooks.values()))
        now = self._webhooks.get(name)
        if new is not None and now is not None and not now.problem:
            points = ", ".join(now.urls) or "nothing: it has no path"
            message = f"it is a scheduler plugin now, asked in payload version {now.version} for {points}"
            self._recorder.event(new, NORMAL, names.EVENT_WEBHOOK_REGISTERED, message)
        self._on_change(name, decisive, now.unit_fields if now is not None else frozenset())
