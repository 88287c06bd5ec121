"""Objects whose plugin does not answer: they wait here, and are worked on again as soon as it does.

A decision that failed because its plugin is down is not repeated by the clock, which would ask a dead service once per
object. All objects of a plugin wait; while any does, one of them at a time is tried when the plugin's circuit allows a
probe, each time another one. As soon as any call of the plugin is answered all of them are worked on. An object whose
plugin did answer, only nothing usable, is tried again after a while: nobody tells us when a plugin changes its mind.

Objects that were decided without plugins, because those may be ignored, wait here in the same way, for any of them.
"""

import asyncio
from collections.abc import Callable, Sequence

from federation.base.clock import Clock
from federation.client.services import Services
from federation.runtime.controller import Key, Result

_PROBE_PAUSE_S = 1.0
"""Between two looks at which plugins may be probed, while anything waits."""
_PARKED = Result()
_AT_ONCE = Result(0.0)


class Parking:
    """Which objects wait for which plugin. `run` tries one of them at a time until cancelled."""

    def __init__(
        self, services: Services | None, enqueue: Callable[[Key], None], *, clock: Clock, plugin_retry_s: float
    ) -> None:
        self._services = services
        self._enqueue = enqueue
        self._clock = clock
        self._retry = Result(plugin_retry_s)
        self._parked: dict[str, dict[Key, None]] = {}
        self._plugins_of: dict[Key, Sequence[str]] = {}
        self._recovered_s: dict[str, float] = {}
        self._has_parked = asyncio.Event()
        if services is not None:
            services.on_recovered(self._on_recovered)

    def park(self, key: Key, plugins: Sequence[str], since_s: float) -> Result:
        """Return when the object is to be tried again, whose decision, begun at `since_s`, lacked these plugins."""
        if not all(map(self.is_silent, plugins)):
            is_back = any(self._recovered_s.get(plugin, -1.0) >= since_s for plugin in plugins)
            return _AT_ONCE if is_back else self._retry
        for plugin in plugins:
            self._parked.setdefault(plugin, {})[key] = None
        self._plugins_of[key] = plugins
        self._has_parked.set()
        return _PARKED

    def is_silent(self, plugin: str) -> bool:
        """Say whether the plugin has not answered when it was asked last."""
        return self._services is not None and self._services.probe_in_s(plugin) is not None

    def may_answer(self, plugin: str) -> bool:
        """Say whether asking the plugin makes sense: it answers, or its circuit allows a probe."""
        return self._services is not None and (self._services.probe_in_s(plugin) or 0.0) <= 0

    def leave(self, key: Key) -> None:
        """Note that the object is being worked on: it waits no longer."""
        for plugin in self._plugins_of.pop(key, ()):
            self._parked.get(plugin, {}).pop(key, None)

    async def run(self) -> None:
        """Let one object at a time try each plugin that may be probed."""
        while True:
            await self._has_parked.wait()
            await self._clock.sleep(_PROBE_PAUSE_S)
            self._parked = {plugin: keys for plugin, keys in self._parked.items() if keys}
            if not self._parked:
                self._has_parked.clear()
            for plugin, keys in self._parked.items():
                if self.may_answer(plugin):
                    key = next(iter(keys))
                    del keys[key]
                    keys[key] = None  # the next probe is another one's turn
                    self._enqueue(key)

    def _on_recovered(self, plugin: str) -> None:
        self._recovered_s[plugin] = self._clock.monotonic()
        for key in self._parked.pop(plugin, {}):
            self.leave(key)
            self._enqueue(key)
