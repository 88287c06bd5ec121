"""Objects that wait for an unavailable remote plugin.

Retrying each of them by a timer would call a dead service once per object. Instead all objects of a plugin wait; while
any does, one of them at a time, in turn, is retried whenever the plugin's circuit breaker allows a probe. The first
response of the plugin requeues all of them. An object for which the plugin returned an invalid response is retried
after a delay, because nothing signals that a plugin changed.

Objects that were decided without plugins, because these are ignorable, wait in the same way for any of them.
"""

import asyncio
from collections.abc import Callable, Sequence

from federation.apimachinery.clock import Clock
from federation.client.retryingwebhookclient import RetryingWebhookClient
from federation.runtime.controller import Key, Result

_PROBE_INTERVAL_S = 1.0
"""Between two checks of which plugins may be probed, while any object waits."""
_WAITING = Result()
_AT_ONCE = Result(0.0)


class PluginOutages:
    """Waiting objects by plugin. `run` retries one of them at a time until cancelled."""

    def __init__(
        self,
        webhook_client: RetryingWebhookClient | None,
        requeue: Callable[[Key], None],
        *,
        clock: Clock,
        plugin_retry_s: float,
    ) -> None:
        self._webhook_client = webhook_client
        self._requeue = requeue
        self._clock = clock
        self._retry = Result(plugin_retry_s)
        self._waiting: dict[str, dict[Key, None]] = {}
        self._plugins_of: dict[Key, Sequence[str]] = {}
        self._recovered_s: dict[str, float] = {}
        self._has_waiting = asyncio.Event()
        if webhook_client is not None:
            webhook_client.on_recovered(self._on_recovered)

    @property
    def has_webhook_client(self) -> bool:
        """Whether remote plugins can be called at all."""
        return self._webhook_client is not None

    def wait_for(self, key: Key, plugins: Sequence[str], since_s: float) -> Result:
        """Let an object wait for the plugins that failed in its attempt, begun at `since_s`; return its requeueing."""
        if not all(map(self.is_unavailable, plugins)):
            has_recovered = any(self._recovered_s.get(plugin, -1.0) >= since_s for plugin in plugins)
            return _AT_ONCE if has_recovered else self._retry
        for plugin in plugins:
            self._waiting.setdefault(plugin, {})[key] = None
        self._plugins_of[key] = plugins
        self._has_waiting.set()
        return _WAITING

    def is_unavailable(self, plugin: str) -> bool:
        """Return whether the plugin's last call had no response."""
        return self._webhook_client is not None and self._webhook_client.retry_in_s(plugin) is not None

    def may_be_available(self, plugin: str) -> bool:
        """Return whether the plugin can be called: it is available, or its circuit breaker allows a probe."""
        return self._webhook_client is not None and (self._webhook_client.retry_in_s(plugin) or 0.0) <= 0

    def stop_waiting(self, key: Key) -> None:
        """Remove an object that is being reconciled."""
        for plugin in self._plugins_of.pop(key, ()):
            self._waiting.get(plugin, {}).pop(key, None)

    async def run(self) -> None:
        """Requeue one waiting object per plugin that may be probed."""
        while True:
            await self._has_waiting.wait()
            await self._clock.sleep(_PROBE_INTERVAL_S)
            self._waiting = {plugin: keys for plugin, keys in self._waiting.items() if keys}
            if not self._waiting:
                self._has_waiting.clear()
            for plugin, keys in self._waiting.items():
                if self.may_be_available(plugin):
                    key = next(iter(keys))
                    del keys[key]
                    keys[key] = None  # Moved to the end, so that the next probe uses another object.
                    self._requeue(key)

    def _on_recovered(self, plugin: str) -> None:
        self._recovered_s[plugin] = self._clock.monotonic()
        for key in self._waiting.pop(plugin, {}):
            self.stop_waiting(key)
            self._requeue(key)
